/* Checks of what cuBLAS and cuBLASLt support, and definitions that their rows share. */
#ifndef CUDA_CUBLAS_ADMIT_H
#define CUDA_CUBLAS_ADMIT_H

#include "tenon/module/kernel.h"
#include "tenon/module/op/matmul.h"

#include <stdbool.h>

/* cuda_blas_admit_kind checks everything except the shape; the others check the shape, too. */
tn_status cuda_blas_admit_kind(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status cuda_blas_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
/* The same for rows that copy misaligned operands. */
tn_status cuda_blas_admit_padded(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status cuda_blas_admit_int8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status cuda_blas_admit_f8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);

/* Returns whether there is a scale for each row of A or column of B. */
bool cuda_blas_scales_each(const tn_op *op);

/* Terminated by 0. */
extern const tn_dtype cuda_blas_wide[], cuda_blas_f32[], cuda_blas_f16[], cuda_blas_half[],
    cuda_blas_i8[], cuda_blas_f8[];

enum {
    BLAS_SHAPES = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
                  TN_MATMUL_USES_STRIDES,
    BLAS_FACTORS = TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA
};

#endif
