/* Products by cuBLAS, which chooses its way itself at every call: one plan serves every size. */
#ifndef CUDA_CUBLAS_GEMM_H
#define CUDA_CUBLAS_GEMM_H

#include "tenon/module/kernel.h"

extern const tn_kernel_row cuda_blas_matmul_row, cuda_blas_tf32_row, cuda_blas_half_row,
    cuda_blas_half_reduced_row, cuda_blas_f16_sums_row, cuda_blas_int8_row;

#endif
