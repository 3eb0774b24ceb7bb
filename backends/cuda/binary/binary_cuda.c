/* binary: functions of two numbers. */
#include "../kernels/elementwise.h"

#include "tenon/module/op/binary.h"

/* The functions in functions.cuh, without "of_". */
static const char *const words[TN_BINARY_COUNT] = {
    [TN_BINARY_ADD] = "add", [TN_BINARY_SUB] = "sub", [TN_BINARY_MUL] = "mul",
    [TN_BINARY_DIV] = "div", [TN_BINARY_MAX] = "max", [TN_BINARY_MIN] = "min",
};

static tn_status plan_binary(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const tn_dtype in = run->op->operand[TN_ELEMENTWISE_IN].dtype;
    const tn_dtype to = run->op->operand[TN_ELEMENTWISE_OUT].dtype;
    char compute[32];
    snprintf(compute, sizeof compute, "of_%s(a,b)", words[TN_PARAMS(run->op, elementwise)->kind]);
    const cuda_elementwise variant = {.in = cuda_type_of(in),
                                      .out = cuda_type_of(to),
                                      .compute = compute,
                                      .inputs = 2,
                                      .wraps = cuda_is_whole(in)};
    return cuda_elementwise_plan(run, &variant, out, out_bytes, err);
}

static tn_status admit_binary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    (void)row;
    if (TN_PARAMS(op, elementwise)->kind < 0 || TN_PARAMS(op, elementwise)->kind >= TN_BINARY_COUNT)
        return tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_BINARY_COUNT - 1,
                         TN_PARAMS(op, elementwise)->kind);
    if (op->operand[TN_ELEMENTWISE_OTHER].dtype != op->operand[TN_ELEMENTWISE_IN].dtype)
        return cuda_refuse(why, TN_REFUSE_DTYPE, "other.dtype",
                           op->operand[TN_ELEMENTWISE_IN].dtype,
                           op->operand[TN_ELEMENTWISE_OTHER].dtype,
                           "both inputs need one dtype: cast one of them");
    return cuda_elementwise_admit_same(query, why);
}

const tn_kernel_row cuda_binary_row = {
    .name = "cuda.binary.own",
    .op = TN_OP_BINARY,
    CUDA_ROW,
    .dtypes = cuda_number_dtypes,
    .numerics = CUDA_REPEATS,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
    .admit = admit_binary,
    .plan = plan_binary,
    .run = cuda_elementwise_run,
};
