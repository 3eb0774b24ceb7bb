/* unary: functions of one number. */
#include "../kernels/elementwise.h"

#include "tenon/module/op/unary.h"

/* The functions in functions.cuh, without "of_". */
static const char *const words[TN_UNARY_COUNT] = {
    [TN_UNARY_NEG] = "neg",
    [TN_UNARY_ABS] = "abs",
    [TN_UNARY_SQRT] = "sqrt",
    [TN_UNARY_RSQRT] = "rsqrt",
    [TN_UNARY_EXP] = "exp",
    [TN_UNARY_LOG] = "log",
    [TN_UNARY_TANH] = "tanh",
    [TN_UNARY_SIGMOID] = "sigmoid",
    [TN_UNARY_RELU] = "relu",
    [TN_UNARY_GELU] = "gelu",
    [TN_UNARY_GELU_TANH] = "gelu_tanh",
    [TN_UNARY_SILU] = "silu",
};

static tn_status plan_unary(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err)
{
    const int32_t kind = TN_PARAMS(run->op, elementwise)->kind;
    const tn_dtype in = run->op->operand[TN_ELEMENTWISE_IN].dtype;
    const tn_dtype to = run->op->operand[TN_ELEMENTWISE_OUT].dtype;
    const bool narrow = kind == TN_UNARY_GELU && cuda_bytes_of(to) == 2;
    char compute[32];
    snprintf(compute, sizeof compute, "of_%s%s(a)", words[kind], narrow ? "_narrow" : "");
    const cuda_elementwise variant = {.in = cuda_type_of(in),
                                      .out = cuda_type_of(to),
                                      .compute = compute,
                                      .inputs = 1,
                                      .wraps = cuda_is_whole(in)};
    return cuda_elementwise_plan(run, &variant, out, out_bytes, err);
}

static tn_status admit_unary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const int32_t kind = TN_PARAMS(query->op, elementwise)->kind;
    const tn_dtype in = query->op->operand[TN_ELEMENTWISE_IN].dtype;
    (void)row;
    if (kind < 0 || kind >= TN_UNARY_COUNT)
        return tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_UNARY_COUNT - 1, kind);
    if (cuda_is_whole(in) && kind != TN_UNARY_NEG && kind != TN_UNARY_ABS && kind != TN_UNARY_RELU)
        return cuda_refuse(why, TN_REFUSE_DTYPE, "in.dtype", TN_F32, in,
                           "of whole numbers there are neg, abs and relu: cast to a float first");
    return cuda_elementwise_admit_same(query, why);
}

const tn_kernel_row cuda_unary_row = {
    .name = "cuda.unary.own",
    .op = TN_OP_UNARY,
    CUDA_ROW,
    .dtypes = cuda_number_dtypes,
    .numerics = CUDA_REPEATS,
    .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
               TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
    .admit = admit_unary,
    .plan = plan_unary,
    .run = cuda_elementwise_run,
};
