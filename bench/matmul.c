/* The CPU's own f32 and f64 matmuls compared with OpenBLAS: large, small, and in batches; few rows
 * compared with reading the matrix; two threads compared with one. Rows are called as the
 * dispatcher calls them; the best row that this processor runs is used. The overhead of tn_matmul
 * is measured in bench_dispatch. Arguments are sizes of large products, measured instead of
 * everything else.
 *
 * OPENBLAS_CORETYPE selects OpenBLAS's kernels for the processor's instruction set, because
 * releases do not always detect it. Large products are also compared with MKL, if the loader finds
 * it. */
#include "harness.h"
#include "host.h"
#include "reading.h"

#include "os/bind.h"
#include "os/cpu.h"
#include "tenon/module/kernel.h"
#include "tenon/module/op/matmul.h"
#include "tenon/parallel.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

tn_module_entry_fn tni_cpu_module_entry;

enum { OPERANDS = 3 };

typedef struct blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
    void (*set_num_threads)(int threads);
    char *(*get_corename)(void); /* OpenBLAS only */
    char name[64];
    bool here;
} blas;

static blas openblas = {.name = "OpenBLAS (install libopenblas0)"}, mkl = {.name = "MKL"};
static int32_t all_threads;

/* One product, or a batch of them, contiguous. */
typedef struct product {
    const tn_kernel_row *row;
    tn_op op;
    int32_t threads;
    char *data[OPERANDS];
    void *pointers[OPERANDS + 1];
    void *workspace;
    uint64_t workspace_bytes;
    const blas *rival;
} product;

static const tn_kernel_row *best_row(void)
{
    const tn_module *module = NULL;
    (void)tni_cpu_module_entry(&bench_host, &module, NULL);
    for (const tn_kernel_row *const *row = module->kernels; *row; row++) {
        if ((*row)->op == TN_OP_MATMUL && !(*row)->library && (*row)->dtypes[0] == TN_F32 &&
            (*row)->cpu_needs == ((*row)->cpu_needs & tni_cpu_features()))
            return *row;
    }
    return NULL;
}

static void open_openblas(void)
{
    static const tn_symbol symbols[] = {
        {"cblas_sgemm", offsetof(blas, sgemm)},
        {"cblas_dgemm", offsetof(blas, dgemm)},
        {"openblas_set_num_threads", offsetof(blas, set_num_threads)},
        {"openblas_get_corename", offsetof(blas, get_corename)}};
    const uint64_t features = tni_cpu_features();
    const char *core = features & TN_CPU_BIT(AVX512VL) ? "SkylakeX"
                       : features & TN_CPU_BIT(AVX2)   ? "Haswell"
                                                       : NULL;
    if (core)
        (void)setenv("OPENBLAS_CORETYPE", core, 0);
    if (tni_bind("libopenblas.so.0|libopenblas.so", symbols, 4, NULL, &openblas, NULL, NULL))
        return;
    openblas.here = true;
    snprintf(openblas.name, sizeof openblas.name, "OpenBLAS, %.40s", openblas.get_corename());
}

static void open_mkl(void)
{
    static const tn_symbol symbols[] = {{"cblas_sgemm", offsetof(blas, sgemm)},
                                        {"cblas_dgemm", offsetof(blas, dgemm)},
                                        {"MKL_Set_Num_Threads", offsetof(blas, set_num_threads)}};
    mkl.here = !tni_bind("libmkl_rt.so.2|libmkl_rt.so", symbols, 3, NULL, &mkl, NULL, NULL);
    if (!mkl.here)
        printf("without MKL: no libmkl_rt is in the loader's folders\n");
}

static char *fill(tn_dtype dtype, int64_t count)
{
    const size_t size = dtype == TN_F64 ? 8 : 4, bytes = (size_t)count * size;
    char *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    for (int64_t i = 0; memory && i < count; i++) {
        const double x = (double)(i * 7919 % 1013) / 512 - 1;
        const float y = (float)x;
        memcpy(memory + (size_t)i * size, size == 8 ? (const void *)&x : (const void *)&y, size);
    }
    return memory;
}

static void lay(tn_layout *out, tn_dtype dtype, int64_t count, int64_t rows, int64_t columns)
{
    *out = (tn_layout){.dtype = dtype,
                       .rank = 3,
                       .alignment = 64,
                       .shape = {count, rows, columns},
                       .stride = {rows * columns, columns, 1}};
}

/* Exits if out of memory. */
static product *make(tn_dtype dtype, int64_t count, int64_t m, int64_t n, int64_t k,
                     int32_t threads)
{
    product *it = calloc(1, sizeof *it);
    if (!it)
        exit(1);
    it->row = best_row();
    it->threads = threads;
    it->op = (tn_op){.struct_size = sizeof it->op, .kind = TN_OP_MATMUL, .count = OPERANDS};
    it->op.uses = count > 1 ? TN_MATMUL_USES_BATCH : 0;
    *TN_PARAMS_MUTABLE(&it->op, matmul) = (tn_matmul_op){
        .m = m, .n = n, .k = k, .matrices = count, .batch_rank = 1, .acc = dtype, .alpha = 1};
    lay(&it->op.operand[TN_MATMUL_A], dtype, count, m, k);
    lay(&it->op.operand[TN_MATMUL_B], dtype, count, k, n);
    lay(&it->op.operand[TN_MATMUL_OUT], dtype, count, m, n);
    const tn_query query = {.struct_size = sizeof query, .op = &it->op, .threads = threads};
    it->workspace_bytes = it->row->workspace(it->row, &query);
    it->workspace = aligned_alloc(4096, (size_t)(it->workspace_bytes + 4096) / 4096 * 4096);
    it->pointers[0] = it->data[0] = fill(dtype, count * m * k);
    it->pointers[1] = it->data[1] = fill(dtype, count * k * n);
    it->pointers[2] = it->data[2] = fill(dtype, count * m * n);
    if (!it->data[0] || !it->data[1] || !it->data[2] || !it->workspace)
        exit(1);
    return it;
}

static void end(product *it)
{
    for (int i = 0; i < OPERANDS; i++)
        free(it->data[i]);
    free(it->workspace);
    free(it);
}

static void run_row(void *user, int64_t times)
{
    const product *it = user;
    const tn_run run = {.struct_size = sizeof run,
                        .row = it->row,
                        .op = &it->op,
                        .data = it->pointers,
                        .workspace = it->workspace,
                        .workspace_bytes = it->workspace_bytes,
                        .host = &bench_host,
                        .threads = it->threads};
    for (int64_t i = 0; i < times; i++) {
        if (it->row->run(&run, NULL))
            exit(1);
    }
}

static void set_threads(void *user)
{
    const product *it = user;
    it->rival->set_num_threads(it->threads);
}

/* Makes one call for each matrix. */
static void run_blas(void *user, int64_t times)
{
    const product *it = user;
    const tn_matmul_op *op = TN_PARAMS(&it->op, matmul);
    const int m = (int)op->m, n = (int)op->n, k = (int)op->k;
    for (int64_t i = 0; i < times * op->matrices; i++) {
        const int64_t at = i % op->matrices;
        if (op->acc == TN_F64)
            it->rival->dgemm(101, 111, 111, m, n, k, 1, (double *)(void *)it->data[0] + at * m * k,
                             k, (double *)(void *)it->data[1] + at * k * n, n, 0,
                             (double *)(void *)it->data[2] + at * m * n, n);
        else
            it->rival->sgemm(101, 111, 111, m, n, k, 1, (float *)(void *)it->data[0] + at * m * k,
                             k, (float *)(void *)it->data[1] + at * k * n, n, 0,
                             (float *)(void *)it->data[2] + at * m * n, n);
    }
}

static void measure(const char *name, double aim, const char *unit, tn_dtype dtype, int64_t count,
                    int64_t side, int32_t threads, const blas *rival)
{
    char title[96];
    product *it = make(dtype, count, side, side, side, threads);
    it->rival = rival;
    snprintf(title, sizeof title, "%s %s, %d thread%s", dtype == TN_F64 ? "f64" : "f32", name,
             (int)threads, threads == 1 ? "" : "s");
    const bench_figure figure = {.name = title,
                                 .kind = BENCH_RATIO,
                                 .aim = aim,
                                 .unit = unit,
                                 .ours = {.name = it->row->name, .run = run_row, .user = it},
                                 .rival = {.name = rival->name,
                                           .run = rival->here ? run_blas : NULL,
                                           .user = it,
                                           .begin = rival->here ? set_threads : NULL}};
    bench_run(&figure);
    end(it);
}

static void measure_large(int64_t side, int32_t threads)
{
    const blas *const rivals[] = {&openblas, &mkl};
    char name[32];
    snprintf(name, sizeof name, "%lld cubed", (long long)side);
    for (size_t i = 0; i < sizeof rivals / sizeof rivals[0]; i++) {
        if (!rivals[i]->here && rivals[i] != &openblas)
            continue;
        measure(name, 0.95, "ms", TN_F32, 1, side, threads, rivals[i]);
        measure(name, 0.95, "ms", TN_F64, 1, side, threads, rivals[i]);
    }
}

static void measure_small(void)
{
    static const int sizes[] = {4, 8, 12, 16, 17, 24, 32, 33, 48, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int n = sizes[i];
        char name[32];
        snprintf(name, sizeof name, "%d cubed", n);
        measure(name, n <= 16 ? 1.3 : 1, "ns", TN_F32, 1, n, 1, &openblas);
        measure(name, n <= 16 ? 1.3 : 1, "ns", TN_F64, 1, n, 1, &openblas);
    }
}

static void measure_batches(void)
{
    static const int sizes[] = {4, 8, 16, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int n = sizes[i];
        char name[32];
        snprintf(name, sizeof name, "1000 of %d cubed", n);
        measure(name, 3, "us", TN_F32, 1000, n, all_threads, &openblas);
    }
}

/* A matrix that is read in pieces, each by one thread. */
typedef struct reading {
    const product *of;
    int64_t ahead, pieces;
} reading;

static void read_piece(void *user, int64_t index)
{
    const reading *it = user;
    const int64_t bytes =
        TN_PARAMS(&it->of->op, matmul)->k * TN_PARAMS(&it->of->op, matmul)->n * 4 / it->pieces;
    bench_read(it->of->data[1] + index * bytes, bytes, it->ahead);
}

static void read_matrix(void *user, int64_t times)
{
    const reading *it = user;
    for (int64_t i = 0; i < times; i++) {
        if (it->of->threads > 1)
            tn_parallel_for(it->pieces, read_piece, user);
        else
            for (int64_t p = 0; p < it->pieces; p++)
                read_piece(user, p);
    }
}

/* Multiplies one row by a matrix that exceeds the caches of a core, plain and transposed. */
static void measure_vectors(int32_t threads)
{
    enum { SIDE = 8192 };
    for (int turned = 0; turned < 2; turned++) {
        char title[96];
        product *it = make(TN_F32, 1, 1, SIDE, SIDE, threads);
        if (turned) {
            tn_layout *b = &it->op.operand[TN_MATMUL_B];
            b->stride[1] = 1;
            b->stride[2] = SIDE;
            it->op.uses |= TN_MATMUL_USES_TRANSPOSE;
        }
        snprintf(title, sizeof title, "f32 vector times %d square%s, %d thread%s", SIDE,
                 turned ? ", transposed" : "", (int)threads, threads == 1 ? "" : "s");
        reading plain = {it, 0, 64 * threads}, ahead = {it, 1024, 64 * threads};
        const bench_side beside[] = {
            {.name = "reading it, asking ahead", .run = read_matrix, .user = &ahead}, {0}};
        const bench_figure figure = {
            .name = title,
            .kind = BENCH_RATIO,
            .aim = 0.85,
            .unit = "ms",
            .ours = {.name = it->row->name, .run = run_row, .user = it},
            .rival = {.name = "reading it", .run = read_matrix, .user = &plain},
            .beside = beside};
        bench_run(&figure);
        end(it);
    }
}

static void measure_threads(void)
{
    enum { SIDE = 1536 };
    product *one = make(TN_F32, 1, SIDE, SIDE, SIDE, 1),
            *two = make(TN_F32, 1, SIDE, SIDE, SIDE, 2);
    const bench_figure figure = {.name = "f32 1536 cubed, 2 threads",
                                 .kind = BENCH_RATIO,
                                 .aim = 1.85,
                                 .unit = "ms",
                                 .ours = {.name = "2 threads", .run = run_row, .user = two},
                                 .rival = {.name = "1 thread", .run = run_row, .user = one}};
    if (all_threads == 2)
        bench_run(&figure);
    else
        printf("%s: there are %d\n", figure.name, (int)all_threads);
    end(one);
    end(two);
}

static void measure_all(void)
{
    measure_small();
    measure_batches();
    measure_vectors(1);
    if (all_threads > 1)
        measure_vectors(all_threads);
    measure_threads();
    for (int64_t side = 1024; side <= 2048; side *= 2) {
        measure_large(side, 1);
        if (all_threads > 1)
            measure_large(side, all_threads);
    }
    measure_large(4096, all_threads);
}

int main(int count, char **arguments)
{
    all_threads = tn_parallel_threads();
    open_openblas();
    open_mkl();
    if (count < 2)
        measure_all();
    for (int i = 1; i < count; i++) {
        if (atoi(arguments[i]) > 0)
            measure_large(atoi(arguments[i]), all_threads);
    }
    return bench_end();
}
