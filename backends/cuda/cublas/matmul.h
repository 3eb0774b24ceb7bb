/* Products by cuBLASLt: a plan keeps its descriptors and the way that its heuristics name first. */
#ifndef CUDA_CUBLAS_MATMUL_H
#define CUDA_CUBLAS_MATMUL_H

#include "tenon/module/kernel.h"

/* Memory that a plan may ask for: as much as its kernels for this size make use of. */
uint64_t lt_workspace(const tn_kernel_row *row, const tn_query *query);

tn_status lt_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
void lt_plan_release(const tn_run *run, void *any);
tn_status lt_run(const tn_run *run, tn_error *err);

extern const tn_kernel_row cuda_lt_matmul_row, cuda_lt_tf32_row, cuda_lt_half_row,
    cuda_lt_half_reduced_row, cuda_lt_half_whole_row, cuda_lt_f16_sums_row, cuda_lt_int8_row,
    cuda_lt_f8_row;

#endif
