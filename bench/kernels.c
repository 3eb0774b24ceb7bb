/* Compares the cpu module's kernels with the speed of copying memory on the same number of threads,
 * and measures what the matmul row adds to OpenBLAS itself. Rows are called as the dispatcher calls
 * them; the best row that this processor runs is used.
 *
 * Arrays alternate, and are larger than all caches together. The copy reads and writes as many
 * bytes. */
#include "harness.h"
#include "host.h"

#include "os/bind.h"
#include "os/cpu.h"
#include "tenon/module/kernel.h"
#include "tenon/module/library.h"
#include "tenon/module/op/cast.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/op/norm.h"
#include "tenon/module/op/permute.h"
#include "tenon/module/op/reduce.h"
#include "tenon/module/op/softmax.h"
#include "tenon/module/op/unary.h"
#include "tenon/parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

tn_module_entry_fn tni_cpu_module_entry;

enum { SIDE = 4096, SETS = 4, COPY_PIECE = 256 * 1024 };

/* One op on large arrays. */
typedef struct problem {
    const char *name;
    tn_op op;
    int64_t bytes[2]; /* of in and out */
    const tn_kernel_row *row;
} problem;

static char *arrays[SETS][2];
static float *weights;
static int at;
static int32_t threads;

static const tn_module *module(void)
{
    const tn_module *found = NULL;
    (void)tni_cpu_module_entry(&bench_host, &found, NULL);
    return found;
}

/* The first row that runs here: the list begins with the best. */
static const tn_kernel_row *row_of(int32_t op)
{
    for (const tn_kernel_row *const *row = module()->kernels; *row; row++) {
        if ((*row)->op == op && (*row)->cpu_needs == ((*row)->cpu_needs & tni_cpu_features()))
            return *row;
    }
    return NULL;
}

static void run_row(void *user, int64_t times)
{
    const problem *it = user;
    for (int64_t i = 0; i < times; i++) {
        at = (at + 1) % SETS;
        void *data[] = {arrays[at][0], arrays[at][1], weights, weights, NULL, NULL};
        const tn_run run = {.struct_size = sizeof run,
                            .row = it->row,
                            .op = &it->op,
                            .data = data,
                            .host = &bench_host,
                            .threads = threads};
        if (it->row->run(&run, NULL))
            exit(1);
    }
}

static int64_t copied;

static void copy_piece(void *user, int64_t index)
{
    int64_t from = index * COPY_PIECE, left = copied - from;
    (void)user;
    memcpy(arrays[at][1] + from, arrays[at][0] + from,
           (size_t)(left < COPY_PIECE ? left : COPY_PIECE));
}

static void copy(void *user, int64_t times)
{
    const problem *it = user;
    copied = (it->bytes[0] + it->bytes[1]) / 2;
    for (int64_t i = 0; i < times; i++) {
        at = (at + 1) % SETS;
        tn_parallel_for((copied + COPY_PIECE - 1) / COPY_PIECE, copy_piece, NULL);
    }
}

static void set_layout(tn_layout *layout, tn_dtype dtype, int64_t row, int64_t column)
{
    *layout = (tn_layout){
        .dtype = dtype, .rank = 2, .alignment = 64, .shape = {SIDE, SIDE}, .stride = {row, column}};
}

/* In and out are square matrices; weight and bias of a norm are one row. */
static problem make(const char *name, int32_t op, int32_t kind, tn_dtype in, tn_dtype out)
{
    const int64_t elements = (int64_t)SIDE * SIDE;
    problem it = {.name = name, .row = row_of(op)};
    it.op = (tn_op){.struct_size = sizeof it.op, .kind = op, .count = 2};
    *TN_PARAMS_MUTABLE(&it.op, elementwise) = (tn_elementwise_op){
        .kind = kind, .axes = 1, .elements = elements, .rows = SIDE, .size = SIDE, .value = 1e-5};
    set_layout(&it.op.operand[TN_ELEMENTWISE_IN], in, SIDE, 1);
    set_layout(&it.op.operand[TN_ELEMENTWISE_OUT], out, SIDE, 1);
    it.bytes[0] = elements * (int64_t)(in >> 8 & 255) / 8;
    it.bytes[1] = elements * (int64_t)(out >> 8 & 255) / 8;
    if (op == TN_OP_NORM) {
        set_layout(&it.op.operand[TN_NORM_WEIGHT], TN_F32, 0, 1);
        set_layout(&it.op.operand[TN_NORM_BIAS], TN_F32, 0, 1);
        it.op.count = 4;
    }
    if (op == TN_OP_REDUCE) {
        it.op.operand[TN_ELEMENTWISE_OUT].shape[1] = 1;
        it.op.operand[TN_ELEMENTWISE_OUT].stride[0] = 1;
        it.op.operand[TN_ELEMENTWISE_OUT].stride[1] = 0;
        TN_PARAMS_MUTABLE(&it.op, elementwise)->elements = SIDE;
        it.bytes[1] = SIDE * 4;
    }
    return it;
}

static void measure(problem it)
{
    const bench_figure figure = {.name = it.name,
                                 .kind = BENCH_RATIO,
                                 .aim = 0.8,
                                 .unit = "ms",
                                 .ours = {.name = it.row->name, .run = run_row, .user = &it},
                                 .rival = {.name = "copy", .run = copy, .user = &it}};
    bench_run(&figure);
}

static void measure_all(void)
{
    problem turned = make("permute f32, transposed", TN_OP_PERMUTE, 0, TN_F32, TN_F32);
    problem half = make("permute bf16, transposed", TN_OP_PERMUTE, 0, TN_BF16, TN_BF16);
    set_layout(&turned.op.operand[TN_ELEMENTWISE_IN], TN_F32, 1, SIDE);
    set_layout(&half.op.operand[TN_ELEMENTWISE_IN], TN_BF16, 1, SIDE);
    measure(make("permute f32, dense", TN_OP_PERMUTE, 0, TN_F32, TN_F32));
    measure(turned);
    measure(half);
    measure(make("cast f32 to bf16", TN_OP_CAST, 0, TN_F32, TN_BF16));
    measure(make("cast bf16 to f32", TN_OP_CAST, 0, TN_BF16, TN_F32));
    measure(make("cast f32 to f16", TN_OP_CAST, 0, TN_F32, TN_F16));
    measure(make("softmax f32", TN_OP_SOFTMAX, 0, TN_F32, TN_F32));
    measure(make("softmax bf16", TN_OP_SOFTMAX, 0, TN_BF16, TN_BF16));
    measure(make("layer norm f32", TN_OP_NORM, TN_NORM_LAYER, TN_F32, TN_F32));
    measure(make("rms norm f32", TN_OP_NORM, TN_NORM_RMS, TN_F32, TN_F32));
    measure(make("rms norm bf16", TN_OP_NORM, TN_NORM_RMS, TN_BF16, TN_BF16));
    measure(make("gelu f32", TN_OP_UNARY, TN_UNARY_GELU, TN_F32, TN_F32));
    measure(make("sum of rows f32", TN_OP_REDUCE, TN_REDUCE_SUM, TN_F32, TN_F32));
}

/* The layout of the library's table from `open` is not known here, so cblas_sgemm is bound
 * again. */
typedef struct blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
} blas;

enum { SMALL = 16 };
static float small[3][SMALL * SMALL];
static blas direct;

static void call_blas(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++)
        direct.sgemm(101, 111, 111, SMALL, SMALL, SMALL, 1, small[0], SMALL, small[1], SMALL, 0,
                     small[2], SMALL);
}

static void call_row(void *user, int64_t times)
{
    const tn_run *run = user;
    for (int64_t i = 0; i < times; i++)
        (void)run->row->run(run, NULL);
}

static void *open_openblas(void)
{
    static const tn_symbol symbols[] = {{"cblas_sgemm", offsetof(blas, sgemm)}};
    for (const tn_library_row *const *row = module()->libraries; *row; row++) {
        void *self = NULL;
        if (strcmp((*row)->name, "openblas") == 0 &&
            (*row)->open(&bench_host, &self, NULL) == TN_OK &&
            tni_bind((*row)->files, symbols, 1, NULL, &direct, NULL, NULL) == TN_OK)
            return self;
    }
    return NULL;
}

static void measure_matmul(void)
{
    tn_op op = {.struct_size = sizeof op, .kind = TN_OP_MATMUL, .count = 3};
    void *data[] = {small[0], small[1], small[2], NULL};
    tn_run run = {.struct_size = sizeof run,
                  .op = &op,
                  .data = data,
                  .library = open_openblas(),
                  .host = &bench_host,
                  .threads = threads};
    *TN_PARAMS_MUTABLE(&op, matmul) =
        (tn_matmul_op){.m = SMALL, .n = SMALL, .k = SMALL, .matrices = 1, .alpha = 1};
    for (int i = 0; i < 3; i++)
        op.operand[i] =
            (tn_layout){.dtype = TN_F32, .rank = 2, .shape = {SMALL, SMALL}, .stride = {SMALL, 1}};
    run.row = row_of(TN_OP_MATMUL);
    bench_fn *rival = run.library ? call_blas : NULL;
    const bench_figure figure = {
        .name = "matmul 16x16 f32, the row alone",
        .kind = BENCH_ADDED,
        .aim = 15,
        .unit = "ns",
        .ours = {.name = "cpu.matmul.openblas", .run = rival ? call_row : NULL, .user = &run},
        .rival = {.name = rival ? "cblas_sgemm" : "OpenBLAS (install libopenblas0)", .run = rival}};
    if (rival)
        bench_run(&figure);
    else
        printf("%s: OpenBLAS is not here\n", figure.name);
}

static bool fill_arrays(void)
{
    const size_t bytes = (size_t)SIDE * SIDE * 4;
    for (int i = 0; i < 2 * SETS; i++) {
        char *array = aligned_alloc(4096, bytes);
        if (!array)
            return false;
        arrays[i / 2][i % 2] = array;
        for (size_t k = 0; k < bytes / 4; k++) {
            float x = (float)(k % 1013) / 256 - 2;
            memcpy(array + k * 4, &x, 4);
        }
    }
    weights = (float *)(void *)arrays[0][0];
    return true;
}

int main(void)
{
    threads = tn_parallel_threads();
    measure_matmul();
    if (fill_arrays())
        measure_all();
    else
        printf("the figures of kernels need %d MiB of memory\n", 2 * SETS * 64);
    for (int i = 0; i < 2 * SETS; i++)
        free(arrays[i / 2][i % 2]);
    return bench_end();
}
