/* Arguments of shared kernels, for the host that fills them in and the device that reads them: this text is compiled
 * on both. Strides are in elements. NAME/NAME_args.h has those of the operator NAME; on the device this text precedes
 * it. */
#ifndef CUDA_KERNELS_ARGS_H
#define CUDA_KERNELS_ARGS_H

enum { CUDA_ARGS_RANK = 8, CUDA_ARGS_BATCH = CUDA_ARGS_RANK - 2, CUDA_ARGS_OPERANDS = 4 };

/* Elementwise ops; the last dimension is the fastest. */
typedef struct cuda_each_args {
    void *data[CUDA_ARGS_OPERANDS];
    long long elements;
    long long size[CUDA_ARGS_RANK];
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_RANK];
    double value;
    int rank;
    int reserved;
} cuda_each_args;

/* Row-wise ops: `rows` rows of `size` elements; `outer` has the dimensions before a row's own. */
typedef struct cuda_rows_args {
    void *data[CUDA_ARGS_OPERANDS];
    long long rows;
    long long size;
    long long outer[CUDA_ARGS_RANK];
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_RANK];
    long long along[CUDA_ARGS_OPERANDS]; /* stride between neighbours in a row */
    long long whole;                     /* rotary: the last dimension; `size` of it is rotated */
    double epsilon;
    int rank;
    int reserved;
} cuda_rows_args;

/* Random numbers: `elements` of them, starting at Philox block `block`. */
typedef struct cuda_random_args {
    void *out;
    long long elements;
    unsigned long long seed;
    unsigned long long subsequence;
    unsigned long long block;
} cuda_random_args;

#endif
