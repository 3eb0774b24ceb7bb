/* The arguments of matmul_pad.cu, for the host and the device. */
#ifndef CUDA_MATMUL_PAD_ARGS_H
#define CUDA_MATMUL_PAD_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "../kernels/args.h"
#endif

/* A thread of matmul_pad.cu writes CUDA_PAD_CHUNKS chunks of CUDA_PAD_UNITS units, which are 16 bytes. */
enum { CUDA_PAD_UNITS = 8, CUDA_PAD_CHUNKS = 4 };

/* A copy of the lines of matrices to lines of another length. Sizes and strides are in units of two bytes; a matrix
 * has less than 2^30 of them. Units that are written but not read become 0. */
typedef struct cuda_pad_args {
    const void *from;
    void *to;
    long long from_line; /* stride between lines */
    long long to_line;
    long long outer[CUDA_ARGS_BATCH];                      /* of the batch */
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_BATCH]; /* of from and to */
    int size;                                              /* units of a line that are read */
    int whole;       /* units of a line that are written, at least `size` */
    int lines;       /* lines of a matrix that are read */
    int whole_lines; /* lines that are written, at least `lines` */
    int rank;        /* of the batch */
    int lanes;       /* threads of a block along a line: a power of two */
    unsigned tiles_across;
    unsigned tiles_down; /* of a matrix */
    unsigned tiles;
} cuda_pad_args;

#endif
