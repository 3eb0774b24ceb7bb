/* Matrix products by a kernel of our own. */
#ifndef CUDA_KERNELS_MATMUL_H
#define CUDA_KERNELS_MATMUL_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

extern const tn_kernel_row cuda_matmul_row, cuda_matmul_int8_row;

/* Parts of so many that make up a size. */
int64_t cuda_tiles_along(int64_t size, int64_t side);

/* Whether neighbours of out down a column lie nearer than those of a row. */
bool cuda_matmul_by_columns(const tn_op *op);

/* An activation of x, as kernels' texts have it. */
const char *cuda_matmul_function(int32_t activation);

/* For every row that is not cuBLASLt's: refuses grouped products of bf16 where a setting has them go through that. */
tn_status cuda_admit_groups(const tn_query *query, tn_refusal *why);

#endif
