/* What both libraries can be told of a product, and what their rows have in common. */
#ifndef CUDA_CUBLAS_ADMIT_H
#define CUDA_CUBLAS_ADMIT_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* All but the shape, and with that. */
tn_status cuda_blas_admit_kind(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status cuda_blas_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status cuda_blas_admit_int8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
tn_status cuda_blas_admit_f8(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);

/* Whether rows of A or columns of B have a scale each. */
bool cuda_blas_scales_each(const tn_op *op);

/* 0-ended. */
extern const tn_dtype cuda_blas_wide[], cuda_blas_f32[], cuda_blas_f16[], cuda_blas_half[],
    cuda_blas_i8[], cuda_blas_f8[];

enum {
    BLAS_SHAPES = TN_MATMUL_USES_BATCH | TN_MATMUL_USES_BROADCAST | TN_MATMUL_USES_TRANSPOSE |
                  TN_MATMUL_USES_STRIDES,
    BLAS_FACTORS = TN_MATMUL_USES_ALPHA | TN_MATMUL_USES_BETA
};

#endif
