/* Attention of listed blocks on tensor cores of capability 8.0 and later: which variant of the kernel computes a problem, what it
 * supports, and what it costs. */
#ifndef CUDA_SPARSE_MMA_H
#define CUDA_SPARSE_MMA_H

#include "../kernels/layout.h"
#include "sparse_schedule.h"
#include "tenon/module/op/attention_sparse.h"

/* What a kernel is compiled for: see attention_sparse_mma.cu. */
typedef struct sparse_variant {
    int size, values, warps, tiles, width, stages, positive;
    int resident; /* blocks that a multiprocessor has at a time */
} sparse_variant;

/* Depends only on what the key of plans has, and not on the batch, the heads and the keys. */
void cuda_sparse_variant_of(const tn_op *op, sparse_variant *out);

/* The kernel of a problem; `options` must have CUDA_SPARSE_OPTIONS bytes and live as long as `out`. */
enum { CUDA_SPARSE_OPTIONS = 256 };
void cuda_sparse_case(const tn_op *op, char *options, cuda_case *out);

/* Rows of a block, its threads, and its bytes of shared memory. */
int cuda_sparse_rows(const sparse_variant *variant);
unsigned cuda_sparse_threads(const sparse_variant *variant);
unsigned cuda_sparse_shared(const sparse_variant *variant);

tn_status cuda_sparse_mma_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
double cuda_sparse_mma_cost(const tn_kernel_row *row, const tn_query *query);

#endif
