/* A row for numbers.c: attention by two products, which our own kernel computes in cuBLASLt's place. */
#include "test_rows.h"

#include "../../backends/cuda/attention/attention_math.h"
#include "../../backends/cuda/kernels/rows.h"
#include "tenon/module/op/attention.h"

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    return cuda_math_admit(row, &cuda_matmul_row, query, why);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    return cuda_math_workspace(row, &cuda_matmul_row, query);
}

static tn_status plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    return cuda_math_plan(run, &cuda_matmul_row, out, out_bytes, err);
}

static const tn_dtype narrow_dtypes[] = {TN_BF16, TN_F16, 0};

#define ROW(its_name, its_dtypes, its_numerics)                                               \
    {                                                                                         \
        .struct_size = sizeof(tn_kernel_row), .name = its_name, .op = TN_OP_ATTENTION,        \
        .version = 1, .dtypes = its_dtypes, .flops_per_us = 1, .bytes_per_us = 1,             \
        .overhead_us = 1, .alignment = 16, .numerics = TN_NUM_RUN_TO_RUN | (its_numerics),    \
        .honours = CUDA_ATTENTION_USES, .admit = admit, .workspace = workspace, .plan = plan, \
        .plan_release = cuda_math_release, .run = cuda_math_run,                              \
    }

const tn_kernel_row math_row = ROW("cuda.attention.math", cuda_float_dtypes, 0);
const tn_kernel_row math16_row =
    ROW("cuda.attention.math16", narrow_dtypes, TN_NUM_REDUCED_REDUCTION);
