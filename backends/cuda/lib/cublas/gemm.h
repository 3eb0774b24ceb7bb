/* Products by cuBLAS, which selects its algorithm at every call: one plan serves every size. */
#ifndef CUDA_CUBLAS_GEMM_H
#define CUDA_CUBLAS_GEMM_H

#include "blas.h"

extern const tn_kernel_row cuda_blas_matmul_row, cuda_blas_tf32_row, cuda_blas_half_row,
    cuda_blas_half_reduced_row, cuda_blas_f16_sums_row, cuda_blas_int8_row;

/* Grouped products: grouped.c. */
extern const tn_kernel_row cuda_blas_grouped_row, cuda_blas_grouped_half_row;

/* Shared by both files. */
typedef struct cuda_gemm_ready {
    cuda_blas_sums sums;
    blas_math math;
} cuda_gemm_ready;
tn_status cuda_gemm_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
/* Returns the workspace, with `behind` bytes after the library's. */
uint64_t cuda_gemm_room(const tn_query *query, uint64_t behind);
tn_status cuda_gemm_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
void cuda_gemm_plan_release(const tn_run *run, void *plan);

/* Calls `queue` while the run holds the handle, after setting stream, workspace and mode; *call is the name of the
 * library function that was called. */
typedef lt_status cuda_gemm_multiply(const tn_run *run, const void *user, blas_handle handle,
                                     const char **call);
tn_status cuda_gemm_turn(const tn_run *run, const cuda_scope *scope, cuda_gemm_multiply *queue,
                         const void *user, tn_error *err);

#endif
