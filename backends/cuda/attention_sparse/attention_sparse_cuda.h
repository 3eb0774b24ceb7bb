/* Shared by our rows of attention-sparse: how a problem is split, its arguments and its work. */
#ifndef CUDA_ATTENTION_SPARSE_CUDA_H
#define CUDA_ATTENTION_SPARSE_CUDA_H

#include "../attention/attention_cuda.h"
#include "attention_sparse_args.h"
#include "tenon/module/op/attention_sparse.h"

/* attention_sparse_args.h and attention_sparse.cuh. */
extern const cuda_text cuda_text_of_sparse_args, cuda_text_of_sparse;

/* What all rows honour. */
enum {
    CUDA_SPARSE_USES = TN_ATTENTION_SPARSE_USES_WINDOW | TN_ATTENTION_SPARSE_USES_MASK |
                       TN_ATTENTION_SPARSE_USES_LISTS | TN_ATTENTION_SPARSE_USES_SIZES |
                       TN_ATTENTION_SPARSE_USES_GROUPS | TN_ATTENTION_SPARSE_USES_LSE |
                       TN_ATTENTION_SPARSE_USES_VALUE_SIZE | TN_ATTENTION_SPARSE_USES_STRIDES |
                       TN_ATTENTION_SPARSE_USES_OUT_DTYPE
};

/* Returns the tiles of `rows` rows in a block of queries; the last block of queries may have fewer. */
int64_t cuda_sparse_tiles(const tn_op *op, int64_t rows);

/* Returns the number of tiles of all heads. Not exact, but it does not overflow. */
double cuda_sparse_blocks(const tn_op *op, int64_t rows);

/* Returns the mean number of keys of the listed blocks that a query sees; of a mask, whose contents are not known, all. */
double cuda_sparse_keys_seen(const tn_op *op);

/* Checks what our kernels have in common: numbers, counts, the blocks of a launch, alignment. */
tn_status cuda_sparse_admit(const tn_query *query, int64_t rows, tn_refusal *why);

/* Fills in all arguments, for tiles of `rows` rows. */
void cuda_sparse_put(const tn_run *run, int64_t rows, cuda_sparse_args *to);

#endif
