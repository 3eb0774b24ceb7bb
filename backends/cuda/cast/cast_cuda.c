/* cast, with one rounding from in's type to out's. */
#include "../kernels/elementwise.h"

#include "tenon/module/op/cast.h"

static tn_status plan_cast(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_layout *of = run->op->operand;
    const cuda_elementwise variant = {.in = cuda_type_of(of[TN_ELEMENTWISE_IN].dtype),
                                      .out = cuda_type_of(of[TN_ELEMENTWISE_OUT].dtype),
                                      .compute = "a",
                                      .inputs = 1,
                                      .keeps_nans = true};
    return cuda_elementwise_plan(run, &variant, out, out_bytes, err);
}

static tn_status admit_cast(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)row;
    return cuda_elementwise_admit_out(query, why);
}

const tn_kernel_row cuda_cast_row = {
    .name = "cuda.cast.own",
    .op = TN_OP_CAST,
    CUDA_ROW,
    .dtypes = cuda_number_dtypes,
    .numerics = CUDA_EVERYWHERE,
    .honours =
        TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_OUT_DTYPE,
    .admit = admit_cast,
    .plan = plan_cast,
    .run = cuda_elementwise_run,
};
