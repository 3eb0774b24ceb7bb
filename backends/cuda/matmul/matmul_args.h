/* The arguments of matmul.cu and matmul_finish.cu, for the host and the device. */
#ifndef CUDA_MATMUL_ARGS_H
#define CUDA_MATMUL_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "../kernels/args.h"
#endif

/* Bytes of sums that a thread of matmul_finish.cu reads at a time. */
enum { CUDA_FINISH_BYTES = 32 };

/* Matrix products: out = f(alpha A B + beta out + bias), m by n, with k products per sum. The operands are A, B,
 * out and bias, which may be NULL. Out is computed in tiles, numbered across a matrix first, then down, then from
 * matrix to matrix. */
typedef struct cuda_matmul_args {
    void *data[CUDA_ARGS_OPERANDS];
    double alpha;
    double beta;
    long long m;
    long long n;
    long long k;
    long long down[CUDA_ARGS_OPERANDS];   /* stride between rows */
    long long across[CUDA_ARGS_OPERANDS]; /* stride between columns */
    long long outer[CUDA_ARGS_BATCH];     /* of the batch          */
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_BATCH];
    unsigned tiles;
    unsigned tiles_down;
    unsigned tiles_across;
    int rank;       /* of the batch                                                   */
    int a_by_k;     /* A's stride along k is smaller than along rows */
    int b_by_k;     /* the same for B and columns */
    int by_columns; /* out's stride down a column is smaller than along a row */
    int lanes;      /* epilogue after a library's product: threads along a row */
    int whole;      /* the same: neighbours along it are read and written at once */
} cuda_matmul_args;

#endif
