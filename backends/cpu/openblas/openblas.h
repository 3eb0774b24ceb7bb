/* OpenBLAS from inside: its functions, and the one thread that it gets.
 *
 * Its own threads are not used. The sums of its parallel product depend on how many there are, they
 * spin for a while after each product beside the program's pool, and only one product at a time gets
 * them. Products are split here instead, the same way for any number of threads, and every part is
 * computed by OpenBLAS on the thread that asks for it. */
#ifndef TENON_BACKENDS_CPU_OPENBLAS_H
#define TENON_BACKENDS_CPU_OPENBLAS_H

#include "tenon/module/library.h"

#include <stdatomic.h>

/* CBLAS_ORDER and CBLAS_TRANSPOSE of cblas.h. blasint is int in the libraries that are opened. */
enum { TNI_BLAS_ROWS = 101, TNI_BLAS_COLUMNS = 102 };
enum { TNI_BLAS_PLAIN = 111, TNI_BLAS_TRANSPOSED = 112 };

/* What openblas_get_parallel says. */
enum { TNI_OPENBLAS_SERIAL = 0, TNI_OPENBLAS_POOL = 1, TNI_OPENBLAS_OPENMP = 2 };

#define TNI_BLAS_GEMM_REAL(real)                                                                  \
    (int order, int transpose_a, int transpose_b, int m, int n, int k, real alpha, const real *a, \
     int lda, const real *b, int ldb, real beta, real *c, int ldc)
#define TNI_BLAS_GEMM_COMPLEX                                                             \
    (int order, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, \
     const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)

typedef struct tni_openblas {
    char *(*get_config)(void);
    int (*get_parallel)(void);
    int (*get_num_threads)(void);
    void (*set_num_threads)(int threads);
    int (*omp_get_max_threads)(void); /* of the run-time it is linked to; else NULL */
    void (*omp_set_num_threads)(int threads);
    void(*sgemm) TNI_BLAS_GEMM_REAL(float);
    void(*dgemm) TNI_BLAS_GEMM_REAL(double);
    void(*cgemm) TNI_BLAS_GEMM_COMPLEX;
    void(*zgemm) TNI_BLAS_GEMM_COMPLEX;
    int parallel;
    atomic_flag lock; /* of the two below */
    int inside;       /* calls under way   */
    int before;       /* its number of threads outside of them */
} tni_openblas;

/* Between the two, products of OpenBLAS run on the calling thread alone. Its pool has one number of
 * threads for the process, which is given back when the last call leaves; OpenMP has one for each
 * thread. `leave` takes what `enter` returned. */
int tni_openblas_enter(tni_openblas *self);
void tni_openblas_leave(tni_openblas *self, int before);

#endif
