/* Times library calls on cuda:0 for a script that times a rival: neither side includes the overhead
 * of a call from Python. Not a benchmark by itself; bench/peers/bench_torch_cuda.py runs it.
 *
 * Each line of stdin is an operation and a count; the answer is the nanoseconds of one until the
 * call returns, while the device's queue is never full. */
#include "cuda_open.h"
#include "host.h"

#include "../backends/cuda/lib/cublas/lt.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 128, SIDE = 64, HEADS = 4, WORKSPACE = 4 << 20 };

static tn_tensor in, other, out;
static tn_tensor q, k, v, attended;
static tn_event *event;

/* The product, calling cuBLASLt directly. */
static struct {
    cuda_lt *lt;
    lt_handle handle;
    lt_desc desc;
    lt_layout layout; /* of all three matrices */
    lt_found found;
    void *workspace;
} direct;

static tn_status add(tn_error *err)
{
    return tn_binary(NULL,
                     TN_ARGS(binary, .in = &in, .other = &other, .out = &out, .kind = TN_BINARY_ADD,
                             .stream = gpu.stream),
                     err);
}

static tn_status soften(tn_error *err)
{
    return tn_softmax(NULL, TN_ARGS(softmax, .in = &in, .out = &out, .stream = gpu.stream), err);
}

static tn_status multiply(tn_error *err)
{
    return tn_matmul(
        NULL, TN_ARGS(matmul, .a = &in, .b = &other, .out = &out, .stream = gpu.stream), err);
}

static tn_status attend(tn_error *err)
{
    return tn_attention(
        NULL, TN_ARGS(attention, .q = &q, .k = &k, .v = &v, .out = &attended, .stream = gpu.stream),
        err);
}

static lt_status prepare(cuda_lt *lt)
{
    const uint64_t bytes = WORKSPACE;
    lt_preference preference = NULL;
    int count = 0;
    lt_status code = lt->create(&direct.handle);
    if (!code)
        code = lt->desc_create(&direct.desc, LT_COMPUTE_32F, LT_R_32F);
    if (!code)
        code = lt->layout_create(&direct.layout, LT_R_32F, SIDE, SIDE, SIDE);
    if (!code)
        code = lt->preference_create(&preference);
    if (!code)
        code = lt->preference_set(preference, LT_PREFER_WORKSPACE, &bytes, sizeof bytes);
    if (!code)
        code = lt->heuristic(direct.handle, direct.desc, direct.layout, direct.layout,
                             direct.layout, direct.layout, preference, 1, &direct.found, &count);
    return code ? code : count > 0 ? direct.found.state : LT_NOT_SUPPORTED;
}

static void open_directly(void)
{
    void *lt = NULL;
    tn_error err;
    bench_cuda_must(cuda_lt_row.open(&bench_host, &lt, &err), &err);
    bench_cuda_must(tn_memory_alloc(gpu.device, WORKSPACE, "bench", &direct.workspace, &err), &err);
    bench_cuda_must(cuda_lt_check(prepare(lt), "cublasLtMatmulAlgoGetHeuristic", &err), &err);
    direct.lt = lt;
}

static tn_status multiply_directly(tn_error *err)
{
    const float one = 1, none = 0;
    if (!direct.lt)
        open_directly();
    return cuda_lt_check(
        direct.lt->matmul(direct.handle, direct.desc, &one, other.data, direct.layout, in.data,
                          direct.layout, &none, out.data, direct.layout, out.data, direct.layout,
                          &direct.found.algo, direct.workspace, WORKSPACE, gpu.raw),
        "cublasLtMatmul", err);
}

static tn_status record(tn_error *err)
{
    return tn_event_record(event, gpu.stream, err);
}

typedef tn_status call_fn(tn_error *err);

static call_fn *call_of(const char *word)
{
    static const struct {
        const char *word;
        call_fn *call;
    } calls[] = {{"add", add},          {"softmax", soften},
                 {"matmul", multiply},  {"cublasLtMatmul", multiply_directly},
                 {"attention", attend}, {"record", record}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(word, calls[i].word) == 0)
            return calls[i].call;
    }
    fprintf(stderr, "cuda_calls: no operation \"%s\"\n", word);
    exit(1);
}

static void make_tensor(tn_dtype dtype, const int64_t *shape, int32_t ndim, tn_tensor *to)
{
    tn_error err;
    bench_cuda_must(tn_tensor_create(gpu.device, dtype, shape, ndim, to, &err), &err);
    bench_cuda_must(tn_fill(NULL, TN_ARGS(fill, .out = to, .value = 1, .stream = gpu.stream), &err),
                    &err);
}

static void make(void)
{
    const int64_t square[] = {SIDE, SIDE}, heads[] = {1, HEADS, SIDE, SIDE};
    tn_tensor *squares[] = {&in, &other, &out}, *attention[] = {&q, &k, &v, &attended};
    tn_error err;
    for (int i = 0; i < 3; i++)
        make_tensor(TN_F32, square, 2, squares[i]);
    for (int i = 0; i < 4; i++)
        make_tensor(TN_BF16, heads, 4, attention[i]);
    bench_cuda_must(tn_event_create(gpu.device, TN_ARGS(event, .enable_timing = 1), &event, &err),
                    &err);
}

static int64_t time_calls(call_fn *call, long long times)
{
    int64_t took = 0;
    tn_error err;
    for (long long left = times; left > 0; left -= AT_ONCE) {
        long long now = left < AT_ONCE ? left : AT_ONCE;
        int64_t start = tni_clock_ns();
        for (long long i = 0; i < now; i++)
            bench_cuda_must(call(&err), &err);
        took += tni_clock_ns() - start;
        bench_cuda_must(tn_stream_synchronize(gpu.stream, &err), &err);
    }
    return took;
}

int main(void)
{
    char word[32];
    long long times;
    if (!bench_cuda_open())
        return 1;
    fflush(stdout);
    make();
    while (scanf("%31s %lld", word, &times) == 2) {
        call_fn *call = call_of(word);
        (void)time_calls(call, 1);
        printf("%.3f\n", (double)time_calls(call, times) / (double)times);
        fflush(stdout);
    }
    return 0;
}
