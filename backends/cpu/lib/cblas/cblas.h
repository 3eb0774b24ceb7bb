/* Libraries with the C interface of BLAS: the functions that are used, and matmul with them. Each
 * library has a folder with its further functions and its row. */
#ifndef TENON_BACKENDS_CPU_CBLAS_H
#define TENON_BACKENDS_CPU_CBLAS_H

#include "../../vendor_threads.h"
#include "tenon/module/kernel.h"
#include "tenon/module/op/matmul.h"

/* CBLAS_ORDER and CBLAS_TRANSPOSE of cblas.h. Integers have 32 bits in the libraries that are
 * opened. */
enum { TNI_CBLAS_ROWS = 101 };
enum { TNI_CBLAS_PLAIN = 111, TNI_CBLAS_TRANSPOSED = 112 };

#define TNI_CBLAS_REAL(real)                                                                      \
    (int order, int transpose_a, int transpose_b, int m, int n, int k, real alpha, const real *a, \
     int lda, const real *b, int ldb, real beta, real *c, int ldc)
#define TNI_CBLAS_COMPLEX                                                                 \
    (int order, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, \
     const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)

/* The `self` of a library must begin with this struct. */
typedef struct tni_cblas {
    void(*sgemm) TNI_CBLAS_REAL(float);
    void(*dgemm) TNI_CBLAS_REAL(double);
    void(*cgemm) TNI_CBLAS_COMPLEX;
    void(*zgemm) TNI_CBLAS_COMPLEX;
    tni_vendor_threads threads;
    double alone; /* maximum multiplications that the library computes on one thread by itself */
    int64_t tiles_target; /* number of tiles for a large product */
} tni_cblas;

/* For the symbol list of a struct that has this one as its member `blas`. */
#define TNI_CBLAS_SYMBOLS(type)                                                               \
    {"cblas_sgemm", offsetof(type, blas.sgemm)}, {"cblas_dgemm", offsetof(type, blas.dgemm)}, \
        {"cblas_cgemm", offsetof(type, blas.cgemm)},                                          \
    {                                                                                         \
        "cblas_zgemm", offsetof(type, blas.zgemm)                                             \
    }

/* The common fields of a row. The row sets its name, library, version, dtypes, numerics and figures
 * itself. */
#define TNI_CBLAS_ROW                                                                       \
    .struct_size = sizeof(tn_kernel_row), .platform = "cpu", .op = TN_OP_MATMUL,            \
    .honours = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE | \
               TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA | TN_MATMUL_USES_BIAS |           \
               TN_MATMUL_USES_ACTIVATION,                                                   \
    .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K | TN_MATMUL_DIM_BATCH, \
    .admit = tni_cblas_admit, .run = tni_cblas_run, .cost = tni_cblas_cost

extern const tn_dtype tni_cblas_dtypes[], tni_cblas_reals[]; /* with and without complex dtypes */
tn_status tni_cblas_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status tni_cblas_run(const tn_run *run, tn_error *err);
double tni_cblas_cost(const tn_kernel_row *row, const tn_query *query);

#endif
