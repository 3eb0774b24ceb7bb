/* A row for numbers.c: attention by two products, which our own kernel computes in cuBLASLt's place. */
#include "test_rows.h"

#include "../../backends/cuda/attention/attention_math.h"
#include "../../backends/cuda/kernels/rows.h"
#include "tenon/module/op/attention.h"

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    return cuda_math_admit(&cuda_matmul_row, query, why);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    (void)row;
    return cuda_math_workspace(&cuda_matmul_row, query);
}

static tn_status plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_math_plan(run, &cuda_matmul_row, out, out_bytes, err);
}

const tn_kernel_row math_row = {
    .struct_size = sizeof math_row,
    .name = "cuda.attention.math",
    .op = TN_OP_ATTENTION,
    .version = 1,
    .dtypes = cuda_float_dtypes,
    .flops_per_us = 1,
    .bytes_per_us = 1,
    .overhead_us = 1,
    .alignment = 16,
    .numerics = TN_NUM_RUN_TO_RUN,
    .honours = CUDA_ATTENTION_USES,
    .admit = admit,
    .workspace = workspace,
    .plan = plan,
    .plan_release = cuda_math_release,
    .run = cuda_math_run,
};
