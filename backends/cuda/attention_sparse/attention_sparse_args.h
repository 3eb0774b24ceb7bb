/* The arguments of the kernels of attention-sparse, for the host and the device. */
#ifndef CUDA_ATTENTION_SPARSE_ARGS_H
#define CUDA_ATTENTION_SPARSE_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "../attention/attention_args.h"
#endif

/* Attention of listed blocks (tenon/module/op/attention_sparse.h). In `of`, a row is a query of one head: `groups` is the number
 * of heads and `ratio` is 1; `shift` includes the corner that positions count from; `mask` is the mask of blocks, one byte for each,
 * and `mask_kind` is 0. */
typedef struct cuda_sparse_args {
    cuda_attention_args of;
    const int *starts, *blocks; /* NULL: the listed blocks are those of the mask */
    const int *sizes;           /* NULL: all keys are valid */
    long long starts_stride[4], sizes_stride[4], blocks_stride;
    long long entries;             /* of `blocks` */
    int sharers;                   /* heads that share keys */
    int block_queries, block_keys; /* at most the number of queries, of keys */
    int query_blocks, key_blocks;
    int tiles;        /* tiles of rows of a block of queries */
    float log2_scale; /* the scale times log2(e) */
} cuda_sparse_args;

#endif
