/* Matrix products by a kernel of our own. */
#ifndef CUDA_MATMUL_CUDA_H
#define CUDA_MATMUL_CUDA_H

#include "../kernels/layout.h"
#include "matmul_args.h"

/* matmul_args.h, a part of this operator's units. */
extern const cuda_text cuda_text_of_matmul_args;

/* Returns the threads of a block along a line of `size`, with `each` per thread: a power of two, at most CUDA_THREADS, and
 * not more than needed. */
int64_t cuda_matmul_lanes(int64_t size, int64_t each);

/* Returns whether out's stride down a column is smaller than along a row. */
bool cuda_matmul_by_columns(const tn_op *op);

/* Returns an activation of x, as an expression in the kernels' sources. */
const char *cuda_matmul_function(int32_t activation);

/* For every row except cuBLASLt's: refuses grouped bf16 products if a setting directs them to cuBLASLt. */
tn_status cuda_admit_groups(const tn_query *query, tn_refusal *why);

#endif
