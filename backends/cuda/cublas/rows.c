/* What cuBLASLt is asked to compute: a row for each kind of numbers, as each has a speed and a rounding of
 * its own. The three figures are of an H200. */
#include "admit.h"
#include "matmul.h"

enum { AFTER_SUMS = TN_MATMUL_USES_BIAS | TN_MATMUL_USES_ACTIVATION };

#define ROW                                                                          \
    .struct_size = sizeof(tn_kernel_row), .platform = "cuda", .library = "cublaslt", \
    .op = TN_OP_MATMUL, .version = 2, .bytes_per_us = 3.5e6, .overhead_us = 5,       \
    .workspace = lt_workspace, .plan = lt_plan, .plan_release = lt_plan_release, .run = lt_run

const tn_kernel_row cuda_lt_matmul_row = {
    .name = "cuda.matmul.cublaslt",
    .dtypes = cuda_blas_wide,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS,
    .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS,
    .flops_per_us = 5e7,
    .admit = cuda_blas_admit,
    ROW,
};

const tn_kernel_row cuda_lt_tf32_row = {
    .name = "cuda.matmul.cublaslt.tf32",
    .dtypes = cuda_blas_f32,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_ROUNDS_F32_TF32,
    .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS,
    .flops_per_us = 4e8,
    .admit = cuda_blas_admit,
    ROW,
};

const tn_kernel_row cuda_lt_half_row = {
    .name = "cuda.matmul.cublaslt.half",
    .dtypes = cuda_blas_half,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS,
    .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.5e8,
    .admit = cuda_blas_admit,
    ROW,
};

/* Parts of a sum may be put together in out's dtype. */
const tn_kernel_row cuda_lt_half_reduced_row = {
    .name = "cuda.matmul.cublaslt.half-reduced",
    .dtypes = cuda_blas_half,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_REDUCED_REDUCTION,
    .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.6e8,
    .admit = cuda_blas_admit,
    ROW,
};

/* A sum has no parts: one block makes it. */
const tn_kernel_row cuda_lt_half_whole_row = {
    .name = "cuda.matmul.cublaslt.half-whole",
    .dtypes = cuda_blas_half,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE,
    .flops_per_us = 7.4e8,
    .admit = cuda_blas_admit,
    ROW,
};

/* Without alpha and beta, which it would have in f16. */
const tn_kernel_row cuda_lt_f16_sums_row = {
    .name = "cuda.matmul.cublaslt.f16-sums",
    .dtypes = cuda_blas_f16,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_F16_SUMS,
    .honours = BLAS_SHAPES | AFTER_SUMS | TN_MATMUL_USES_ACC,
    .flops_per_us = 7.7e8,
    .admit = cuda_blas_admit,
    ROW,
};

/* The device sums 8-bit floats in fewer bits than those of f32. */
const tn_kernel_row cuda_lt_f8_row = {
    .name = "cuda.matmul.cublaslt.f8",
    .dtypes = cuda_blas_f8,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_SPLIT_SUMS | TN_NUM_REDUCED_REDUCTION,
    .honours =
        BLAS_SHAPES | BLAS_FACTORS | AFTER_SUMS | TN_MATMUL_USES_OUT_DTYPE | TN_MATMUL_USES_SCALES,
    .flops_per_us = 1.4e9,
    .admit = cuda_blas_admit_f8,
    ROW,
};

const tn_kernel_row cuda_lt_int8_row = {
    .name = "cuda.matmul.cublaslt.int8",
    .dtypes = cuda_blas_i8,
    .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT | TN_NUM_CROSS_DEVICE,
    .honours = BLAS_SHAPES,
    .flops_per_us = 1.3e9,
    .admit = cuda_blas_admit_int8,
    ROW,
};
