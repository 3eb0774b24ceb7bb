/* Compares the cuda module's own kernels with the speed at which the device copies memory. The copy
 * is the driver's, with the same total number of bytes read and written. Arrays alternate and are
 * far larger than the device's caches.
 *
 *     bench_cuda_kernels [OP]...      permute, cast, fill, ...; default: all */
#include "cuda_open.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { SETS = 2, ROW = 4096 };

static char *arrays[SETS][3];
static int64_t array_bytes;
static int at;

/* A problem, and its tensors over the current arrays. */
typedef struct problem {
    const char *op;
    const char *name;
    tn_dtype in, out;
    int64_t row; /* elements of a row; 0: square */
    int32_t kind;
    int64_t bytes; /* read and written */
    tn_tensor tensor[4];
    int64_t shape[4][4];
    tn_status (*call)(const struct problem *it, tn_error *err);
} problem;

static tn_status permute(const problem *it, tn_error *err)
{
    static const int32_t order[] = {1, 0};
    return tn_permute(NULL,
                      TN_ARGS(permute, .in = &it->tensor[0], .out = &it->tensor[1], .order = order,
                              .order_count = 2, .stream = gpu.stream),
                      err);
}

static tn_status cast(const problem *it, tn_error *err)
{
    return tn_cast(NULL,
                   TN_ARGS(cast, .in = &it->tensor[0], .out = &it->tensor[1], .stream = gpu.stream),
                   err);
}

static tn_status fill(const problem *it, tn_error *err)
{
    return tn_fill(NULL, TN_ARGS(fill, .out = &it->tensor[1], .value = 1, .stream = gpu.stream),
                   err);
}

static tn_status unary(const problem *it, tn_error *err)
{
    return tn_unary(NULL,
                    TN_ARGS(unary, .in = &it->tensor[0], .out = &it->tensor[1], .kind = it->kind,
                            .stream = gpu.stream),
                    err);
}

static tn_status binary(const problem *it, tn_error *err)
{
    return tn_binary(NULL,
                     TN_ARGS(binary, .in = &it->tensor[0], .other = &it->tensor[2],
                             .out = &it->tensor[1], .kind = it->kind, .stream = gpu.stream),
                     err);
}

static tn_status reduce(const problem *it, tn_error *err)
{
    return tn_reduce(NULL,
                     TN_ARGS(reduce, .in = &it->tensor[0], .out = &it->tensor[1], .keep = 1,
                             .axes = it->shape[1][0] == 1 ? 1 : 2, .kind = it->kind,
                             .stream = gpu.stream),
                     err);
}

static tn_status softmax(const problem *it, tn_error *err)
{
    return tn_softmax(
        NULL, TN_ARGS(softmax, .in = &it->tensor[0], .out = &it->tensor[1], .stream = gpu.stream),
        err);
}

static tn_status norm(const problem *it, tn_error *err)
{
    return tn_norm(NULL,
                   TN_ARGS(norm, .in = &it->tensor[0], .out = &it->tensor[1],
                           .weight = &it->tensor[2], .kind = it->kind, .stream = gpu.stream),
                   err);
}

static tn_status rotary(const problem *it, tn_error *err)
{
    return tn_rotary(NULL,
                     TN_ARGS(rotary, .in = &it->tensor[0], .out = &it->tensor[1],
                             .cos = &it->tensor[2], .sin = &it->tensor[3], .kind = it->kind,
                             .stream = gpu.stream),
                     err);
}

/* Uses the device's generator, which advances; a separate generator would perform the same. */
static tn_status uniform(const problem *it, tn_error *err)
{
    return tn_random_uniform(NULL, &it->tensor[1], err);
}

static tn_status normal(const problem *it, tn_error *err)
{
    return tn_random_normal(NULL, &it->tensor[1], err);
}

static void run_ours(void *user, int64_t times)
{
    problem *it = user;
    tn_error err;
    for (int64_t i = 0; i < times; i++) {
        at = (at + 1) % SETS;
        it->tensor[0].data = arrays[at][0];
        it->tensor[1].data = arrays[at][1];
        it->tensor[2].data = it->tensor[3].data = arrays[at][2];
        bench_cuda_must(it->call(it, &err), &err);
    }
    bench_cuda_must(tn_stream_synchronize(gpu.stream, &err), &err);
}

/* A copy larger than an array is split into pieces. */
static void run_copy(void *user, int64_t times)
{
    const problem *it = user;
    for (int64_t i = 0; i < times; i++) {
        int64_t left = it->bytes / 2, now;
        for (; left > 0; left -= now) {
            now = left < array_bytes ? left : array_bytes;
            at = (at + 1) % SETS;
            bench_cuda_must_cu(gpu.driver.copy_within((cu_deviceptr)(uintptr_t)arrays[at][1],
                                                      (cu_deviceptr)(uintptr_t)arrays[at][0],
                                                      (size_t)now, gpu.raw),
                               "cuMemcpyDtoDAsync");
        }
    }
    bench_cuda_must_cu(gpu.driver.stream_synchronize(gpu.raw), "cuStreamSynchronize");
}

static int64_t bytes_of(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 0xFF) / 8;
}

static void set_tensor(problem *it, int which, tn_dtype dtype, int32_t ndim, const int64_t *shape)
{
    memcpy(it->shape[which], shape, (size_t)ndim * sizeof *shape);
    it->tensor[which] = (tn_tensor){
        .device_type = TN_DLPACK_CUDA, .dtype = dtype, .ndim = ndim, .shape = it->shape[which]};
}

/* Sets 2-D tensors with as many rows as an array holds of the wider dtype. Returns the number of
 * elements. */
static int64_t set_square(problem *it)
{
    int64_t wider = bytes_of(it->in) > bytes_of(it->out) ? bytes_of(it->in) : bytes_of(it->out);
    int64_t elements = array_bytes / wider, side = 1;
    while (it->row == 0 && side * side * 4 <= elements)
        side *= 2;
    int64_t columns = it->row ? it->row : side, rows = elements / columns;
    set_tensor(it, 0, it->in, 2, (const int64_t[]){rows, columns});
    set_tensor(it, 1, it->out, 2, (const int64_t[]){rows, columns});
    set_tensor(it, 2, it->in, 2, (const int64_t[]){rows, columns});
    return rows * columns;
}

static void set_rotary(problem *it)
{
    int64_t heads = array_bytes / (bytes_of(it->in) * ROW * it->row);
    for (int i = 0; i < 2; i++)
        set_tensor(it, i, it->in, 4, (const int64_t[]){1, heads, ROW, it->row});
    for (int i = 2; i < 4; i++)
        set_tensor(it, i, TN_F32, 2, (const int64_t[]){ROW, it->row / 2});
}

static void set_problem(problem *it)
{
    int64_t elements = set_square(it);
    it->bytes = elements * (bytes_of(it->in) + bytes_of(it->out));
    if (it->call == permute)
        set_tensor(it, 1, it->out, 2, (const int64_t[]){it->shape[0][1], it->shape[0][0]});
    if (it->call == fill || it->call == uniform || it->call == normal)
        it->bytes = elements * bytes_of(it->out);
    if (it->call == binary)
        it->bytes += elements * bytes_of(it->in);
    if (it->call == norm)
        set_tensor(it, 2, it->in, 1, &it->row);
    if (it->call == rotary)
        set_rotary(it);
    if (it->call == reduce) {
        bool columns = it->row == 0; /* column sums: adjacent elements belong to different sums */
        set_tensor(it, 1, it->out, 2,
                   (const int64_t[]){columns ? 1 : it->shape[0][0], columns ? it->shape[0][1] : 1});
        it->bytes = elements * bytes_of(it->in);
    }
}

static problem problems[] = {
    {.op = "permute",
     .name = "a transposed copy, f32",
     .in = TN_F32,
     .out = TN_F32,
     .call = permute},
    {.op = "permute",
     .name = "a transposed copy, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .call = permute},
    {.op = "cast", .name = "cast, f32 to bf16", .in = TN_F32, .out = TN_BF16, .call = cast},
    {.op = "cast", .name = "cast, bf16 to f32", .in = TN_BF16, .out = TN_F32, .call = cast},
    {.op = "fill", .name = "fill, f32", .in = TN_F32, .out = TN_F32, .call = fill},
    {.op = "unary",
     .name = "exp, f32",
     .in = TN_F32,
     .out = TN_F32,
     .kind = TN_UNARY_EXP,
     .call = unary},
    {.op = "unary",
     .name = "gelu, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .kind = TN_UNARY_GELU,
     .call = unary},
    {.op = "binary",
     .name = "sum of two, f32",
     .in = TN_F32,
     .out = TN_F32,
     .kind = TN_BINARY_ADD,
     .call = binary},
    {.op = "binary",
     .name = "product of two, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .kind = TN_BINARY_MUL,
     .call = binary},
    {.op = "reduce",
     .name = "sums of rows, f32",
     .in = TN_F32,
     .out = TN_F32,
     .row = ROW,
     .kind = TN_REDUCE_SUM,
     .call = reduce},
    {.op = "reduce",
     .name = "sums of columns, f32",
     .in = TN_F32,
     .out = TN_F32,
     .kind = TN_REDUCE_SUM,
     .call = reduce},
    {.op = "reduce",
     .name = "greatest of rows, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .row = ROW,
     .kind = TN_REDUCE_MAX,
     .call = reduce},
    {.op = "softmax",
     .name = "softmax of rows of 4096, f32",
     .in = TN_F32,
     .out = TN_F32,
     .row = ROW,
     .call = softmax},
    {.op = "softmax",
     .name = "softmax of rows of 4096, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .row = ROW,
     .call = softmax},
    {.op = "norm",
     .name = "layer norm of rows of 4096, f32",
     .in = TN_F32,
     .out = TN_F32,
     .row = ROW,
     .kind = TN_NORM_LAYER,
     .call = norm},
    {.op = "norm",
     .name = "rms norm of rows of 4096, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .row = ROW,
     .kind = TN_NORM_RMS,
     .call = norm},
    {.op = "rotary",
     .name = "rotary, halves of 128, bf16",
     .in = TN_BF16,
     .out = TN_BF16,
     .row = 128,
     .kind = TN_ROTARY_HALVES,
     .call = rotary},
    {.op = "rotary",
     .name = "rotary, pairs of 128, f32",
     .in = TN_F32,
     .out = TN_F32,
     .row = 128,
     .kind = TN_ROTARY_PAIRS,
     .call = rotary},
    {.op = "random", .name = "uniform numbers, f32", .in = TN_F32, .out = TN_F32, .call = uniform},
    {.op = "random", .name = "normal numbers, f32", .in = TN_F32, .out = TN_F32, .call = normal},
    {.op = "random", .name = "normal numbers, bf16", .in = TN_BF16, .out = TN_BF16, .call = normal},
};

/* Random numbers are queued on the current stream. */
static void measure(problem *it)
{
    tn_error err;
    set_problem(it);
    at = 0;
    for (int i = 0; i < 4; i++)
        it->tensor[i].data = arrays[0][i < 3 ? i : 2];
    if (it->call(it, &err)) {
        printf("%-48s not reached: %s\n", it->name, err.message);
        return;
    }
    bench_run(&(bench_figure){.name = it->name,
                              .kind = BENCH_RATIO,
                              .aim = 0.85,
                              .unit = "us",
                              .ours = {.name = "tenon", .run = run_ours, .user = it},
                              .rival = {.name = "a copy", .run = run_copy, .user = it}});
}

/* 512 MiB each, less on a device with less memory. Filled with zeros: no speed depends on the
 * values. */
static void make_arrays(void)
{
    const tn_device_properties *properties = tn_device_properties_get(gpu.device);
    tn_error err;
    array_bytes = 512 << 20;
    while (array_bytes * SETS * 3 > properties->memory_bytes / 2)
        array_bytes /= 2;
    for (int i = 0; i < SETS * 3; i++) {
        void *memory = NULL;
        bench_cuda_must(tn_memory_alloc(gpu.device, (uint64_t)array_bytes, "bench", &memory, &err),
                        &err);
        bench_cuda_must(
            tn_memory_fill(TN_ARGS(memory_fill, .device = gpu.device, .to = memory,
                                   .bytes = (uint64_t)array_bytes, .stream = gpu.stream),
                           &err),
            &err);
        arrays[i / 3][i % 3] = memory;
    }
    bench_cuda_must(tn_stream_synchronize(gpu.stream, &err), &err);
}

int main(int argc, char **argv)
{
    tn_error err;
    if (!bench_cuda_open())
        return bench_end();
    make_arrays();
    bench_cuda_must(tn_stream_set(gpu.stream, &err), &err);
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (bench_wants(problems[i].op, argc, argv))
            measure(&problems[i]);
    }
    return bench_end();
}
