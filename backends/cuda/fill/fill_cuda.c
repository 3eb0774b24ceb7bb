/* fill: the value is an argument of the kernel. */
#include "../kernels/elementwise.h"

#include "tenon/module/op/fill.h"

static tn_status plan_fill(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const cuda_elementwise variant = {
        .out = cuda_type_of(run->op->operand[TN_ELEMENTWISE_OUT].dtype), .compute = "a"};
    return cuda_elementwise_plan(run, &variant, out, out_bytes, err);
}

static tn_status admit_fill(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    return cuda_elementwise_admit_out(query, why);
}

const tn_kernel_row cuda_fill_row = {
    .name = "cuda.fill.own",
    .op = TN_OP_FILL,
    CUDA_ROW,
    .dtypes = cuda_number_dtypes,
    .numerics = CUDA_EVERYWHERE,
    .honours = TN_ELEMENTWISE_USES_STRIDES,
    .admit = admit_fill,
    .plan = plan_fill,
    .run = cuda_elementwise_run,
};
