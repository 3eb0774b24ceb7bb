/* The CPU's own f32 attention. Long and short sequences are compared with the best 2048-cubed
 * matrix product, repeated to the same number of operations, so that a ratio is the share of its
 * speed; causal is compared with dense; a single query with reading its keys and values. Rows are
 * called as the dispatcher calls them; the best row that this processor runs is used. */
#include "harness.h"
#include "host.h"
#include "reading.h"

#include "os/bind.h"
#include "os/cpu.h"
#include "tenon/module/attention.h"
#include "tenon/module/op/attention_backward.h"
#include "tenon/module/op/matmul.h"
#include "tenon/parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

tn_module_entry_fn tni_cpu_module_entry;

enum { SIDE = 2048, READ_PIECE = 256 * 1024 };

static int32_t threads;

/* An op with its operands, f32. */
typedef struct work {
    const tn_kernel_row *row;
    tn_op op;
    void *data[TN_OP_OPERANDS_MAX];
    void *workspace;
    uint64_t workspace_bytes;
    int64_t times; /* repetitions that count as one operation */
} work;

static const tn_kernel_row *best_row(int32_t op)
{
    const tn_module *module = NULL;
    (void)tni_cpu_module_entry(&bench_host, &module, NULL);
    for (const tn_kernel_row *const *row = module->kernels; *row; row++) {
        if ((*row)->op == op && !(*row)->library && (*row)->dtypes[0] == TN_F32 &&
            (*row)->cpu_needs == ((*row)->cpu_needs & tni_cpu_features()))
            return *row;
    }
    return NULL;
}

/* Exits if out of memory. */
static void *need(size_t bytes)
{
    void *memory = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
    if (!memory)
        exit(1);
    return memory;
}

static void lay(work *w, int32_t operand, int32_t rank, const int64_t *shape)
{
    tn_layout *layout = &w->op.operand[operand];
    int64_t count = 1;
    *layout = (tn_layout){.dtype = TN_F32, .rank = rank, .alignment = 64};
    for (int32_t d = rank - 1; d >= 0; d--) {
        layout->shape[d] = shape[d];
        layout->stride[d] = count;
        count *= shape[d];
    }
    float *to = w->data[operand] = need((size_t)count * sizeof *to);
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)(i * 7919 % 1013) / 512 - 1;
}

static void make_ready(work *w)
{
    const tn_query query = {.struct_size = sizeof query, .op = &w->op, .threads = threads};
    w->row = best_row(w->op.kind);
    w->workspace_bytes = w->row->workspace(w->row, &query);
    w->workspace = need((size_t)w->workspace_bytes);
}

typedef struct shape {
    int64_t batch, heads, queries, keys, size;
} shape;

static void make_attention(const shape *s, int32_t kind, bool causal, int64_t times, work *out)
{
    const int64_t q[] = {s->batch, s->heads, s->queries, s->size};
    const int64_t k[] = {s->batch, s->heads, s->keys, s->size};
    const bool back = kind == TN_OP_ATTENTION_BACKWARD;
    *out = (work){.times = times};
    out->op = (tn_op){.struct_size = sizeof out->op,
                      .kind = kind,
                      .count = back ? TN_ATTENTION_BACKWARD_OPERANDS : TN_ATTENTION_OPERANDS};
    *TN_PARAMS_MUTABLE(&out->op, attention) = (tn_attention_op){.batch = s->batch,
                                                                .heads = s->heads,
                                                                .groups = s->heads,
                                                                .queries = s->queries,
                                                                .keys = s->keys,
                                                                .size = s->size,
                                                                .value_size = s->size,
                                                                .left = -1,
                                                                .right = causal ? 0 : -1,
                                                                .scale = 0.1};
    lay(out, TN_ATTENTION_Q, 4, q);
    lay(out, TN_ATTENTION_K, 4, k);
    lay(out, TN_ATTENTION_V, 4, k);
    lay(out, TN_ATTENTION_OUT, 4, q);
    if (back) {
        lay(out, TN_ATTENTION_LSE, 3, q);
        lay(out, TN_ATTENTION_BACKWARD_DOUT, 4, q);
        lay(out, TN_ATTENTION_BACKWARD_DQ, 4, q);
        lay(out, TN_ATTENTION_BACKWARD_DK, 4, k);
        lay(out, TN_ATTENTION_BACKWARD_DV, 4, k);
    }
    make_ready(out);
}

static void make_matmul(work *out)
{
    const int64_t square[] = {SIDE, SIDE};
    *out = (work){.times = 1};
    out->op = (tn_op){.struct_size = sizeof out->op, .kind = TN_OP_MATMUL, .count = 3};
    *TN_PARAMS_MUTABLE(&out->op, matmul) =
        (tn_matmul_op){.m = SIDE, .n = SIDE, .k = SIDE, .matrices = 1, .acc = TN_F32, .alpha = 1};
    for (int32_t i = 0; i < 3; i++)
        lay(out, i, 2, square);
    make_ready(out);
}

static void end(work *w)
{
    for (int32_t i = 0; i < TN_OP_OPERANDS_MAX; i++)
        free(w->data[i]);
    free(w->workspace);
}

static void run_row(void *user, int64_t times)
{
    const work *w = user;
    const tn_run run = {.struct_size = sizeof run,
                        .row = w->row,
                        .op = &w->op,
                        .data = w->data,
                        .workspace = w->workspace,
                        .workspace_bytes = w->workspace_bytes,
                        .host = &bench_host,
                        .threads = threads};
    for (int64_t i = 0; i < times * w->times; i++) {
        if (w->row->run(&run, NULL))
            exit(1);
    }
}

/* OpenBLAS, if available. */
typedef struct blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*set_num_threads)(int threads);
} blas;

static blas direct;

static void run_blas(void *user, int64_t times)
{
    const work *w = user;
    for (int64_t i = 0; i < times * w->times; i++)
        direct.sgemm(101, 111, 111, SIDE, SIDE, SIDE, 1, w->data[0], SIDE, w->data[1], SIDE, 0,
                     w->data[2], SIDE);
}

static double seconds(bench_fn *run, work *w)
{
    double least = 1e9;
    for (int i = 0; i < 7; i++) {
        struct timespec a, b;
        (void)clock_gettime(CLOCK_MONOTONIC, &a);
        run(w, 1);
        (void)clock_gettime(CLOCK_MONOTONIC, &b);
        double taken = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        least = taken < least ? taken : least;
    }
    return least;
}

/* The faster of the two matrix products. */
static bench_side best_matmul(work *w)
{
    static const tn_symbol symbols[] = {
        {"cblas_sgemm", offsetof(blas, sgemm)},
        {"openblas_set_num_threads", offsetof(blas, set_num_threads)}};
    bench_side side = {.name = w->row->name, .run = run_row, .user = w};
    if (tni_cpu_features() & TN_CPU_BIT(AVX512VL))
        (void)setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    if (tni_bind("libopenblas.so.0|libopenblas.so", symbols, 2, NULL, &direct, NULL, NULL))
        return side;
    direct.set_num_threads(threads);
    if (seconds(run_blas, w) < seconds(run_row, w))
        side = (bench_side){.name = "OpenBLAS", .run = run_blas, .user = w};
    printf("the matrix product beside it: %s, %.1f GFLOP/s\n", side.name,
           2.0 * SIDE * SIDE * SIDE / seconds(side.run, w) / 1e9);
    return side;
}

/* `products` matrix products have as many operations as `times` runs of the op. */
static void measure_share(const char *name, double aim, const shape *s, int32_t kind, int64_t times,
                          int64_t products, work *matmul, bench_side rival)
{
    work w;
    make_attention(s, kind, false, times, &w);
    matmul->times = products;
    const bench_figure figure = {.name = name,
                                 .kind = BENCH_RATIO,
                                 .aim = aim,
                                 .unit = "ms",
                                 .ours = {.name = w.row->name, .run = run_row, .user = &w},
                                 .rival = rival};
    bench_run(&figure);
    end(&w);
}

static void measure_causal(void)
{
    const shape s = {1, 2, 8192, 8192, 128};
    work causal, dense;
    make_attention(&s, TN_OP_ATTENTION, true, 1, &causal);
    make_attention(&s, TN_OP_ATTENTION, false, 1, &dense);
    const bench_figure figure = {.name = "f32 causal (1,2,8192,128)",
                                 .kind = BENCH_RATIO,
                                 .aim = 1 / 0.56,
                                 .unit = "ms",
                                 .ours = {.name = "causal", .run = run_row, .user = &causal},
                                 .rival = {.name = "dense", .run = run_row, .user = &dense}};
    bench_run(&figure);
    end(&causal);
    end(&dense);
}

static void read_piece(void *user, int64_t index)
{
    const work *w = user;
    const tn_layout *k = &w->op.operand[TN_ATTENTION_K];
    const int64_t bytes = k->shape[1] * k->stride[1] * (int64_t)sizeof(float);
    const int64_t first = index * READ_PIECE;
    const char *from = w->data[first < bytes ? TN_ATTENTION_K : TN_ATTENTION_V];
    bench_read(from + first % bytes, READ_PIECE, 0);
}

static void read_keys(void *user, int64_t times)
{
    const work *w = user;
    const tn_layout *k = &w->op.operand[TN_ATTENTION_K];
    const int64_t bytes = 2 * k->shape[1] * k->stride[1] * (int64_t)sizeof(float);
    for (int64_t i = 0; i < times; i++)
        tn_parallel_for(bytes / READ_PIECE, read_piece, user);
}

static void measure_decode(void)
{
    const shape s = {1, 8, 1, 65536, 128};
    work w;
    make_attention(&s, TN_OP_ATTENTION, false, 1, &w);
    const bench_figure figure = {
        .name = "f32 one query, 8 heads of 65536 keys of 128",
        .kind = BENCH_RATIO,
        .aim = 0.85,
        .unit = "ms",
        .ours = {.name = w.row->name, .run = run_row, .user = &w},
        .rival = {.name = "reading K and V", .run = read_keys, .user = &w}};
    bench_run(&figure);
    end(&w);
}

static void measure_shares(void)
{
    const int32_t forward = TN_OP_ATTENTION, backward = TN_OP_ATTENTION_BACKWARD;
    work matmul;
    make_matmul(&matmul);
    const bench_side rival = best_matmul(&matmul);
    measure_share("f32 (1,16,4096,64)", 0.70, &(shape){1, 16, 4096, 4096, 64}, forward, 1, 4,
                  &matmul, rival);
    measure_share("f32 (1,8,4096,128)", 0.78, &(shape){1, 8, 4096, 4096, 128}, forward, 1, 4,
                  &matmul, rival);
    measure_share("f32 (1,2,16384,128)", 0.78, &(shape){1, 2, 16384, 16384, 128}, forward, 1, 16,
                  &matmul, rival);
    measure_share("f32 (64,12,128,64)", 0.50, &(shape){64, 12, 128, 128, 64}, forward, 16, 3,
                  &matmul, rival);
    measure_share("f32 backward (1,8,2048,128)", 0.60, &(shape){1, 8, 2048, 2048, 128}, backward, 2,
                  5, &matmul, rival);
    end(&matmul);
}

/* Measures all figures, or those named: share, causal, decode. */
int main(int argc, char **argv)
{
    threads = tn_parallel_threads();
    if (bench_wants("share", argc, argv))
        measure_shares();
    if (bench_wants("causal", argc, argv))
        measure_causal();
    if (bench_wants("decode", argc, argv))
        measure_decode();
    return bench_end();
}
