/* unary: a function of each element. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/elementwise.h"

static const char *const kinds[] = {
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
    [TN_UNARY_GELU_TANH] = "gelu-tanh",
    [TN_UNARY_SILU] = "silu",
    [TN_UNARY_COUNT] = NULL,
};

/* Returns the families of dtypes that a function supports: those that the reference supports. */
static uint32_t families(int32_t kind)
{
    switch (kind) {
    case TN_UNARY_NEG: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    case TN_UNARY_ABS:
    case TN_UNARY_RELU: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT;
    default: return TNI_DTYPE_FLOAT;
    }
}

static tn_status validate_unary(tn_op *op, tn_error *err)
{
    tn_status status = tni_elementwise_check_kind(op, err);
    if (!status)
        status = tni_elementwise_check_family(op, families(TN_PARAMS(op, elementwise)->kind), err);
    if (!status)
        status = tni_elementwise_check_out(op, err);
    if (!status)
        status = tni_elementwise_check_shape(op, err);
    return status ? status : tni_elementwise_finish(op, err);
}

tn_status tni_unary_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_unary_args *args = given;
    const tni_op_class *class = &tni_unary_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_unary_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) = (tn_elementwise_op){.kind = args->kind};
    return status ? status : tni_op_validate(&out->op, err);
}

static void cost_unary(const tn_op *op, double *out_flops, double *out_bytes)
{
    int32_t kind = TN_PARAMS(op, elementwise)->kind;
    bool simple = kind == TN_UNARY_NEG || kind == TN_UNARY_ABS || kind == TN_UNARY_RELU;
    *out_flops = (double)TN_PARAMS(op, elementwise)->elements * (simple ? 1 : 10);
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {.kinds = kinds, .out_key = "out"};

const tni_op_class tni_unary_class = {
    .kind = TN_OP_UNARY,
    .word = "unary",
    .fields = "kind shape out si so inplace align",
    .where = "tn_unary",
    .args = {TNI_ARGS_FORM(unary, kind),
             .tensors = {offsetof(tn_unary_args, in), offsetof(tn_unary_args, out)}},
    .elementwise = &elementwise,
    .check = &tni_unary_check,
    .make = tni_unary_make,
    .operands = tni_elementwise_in_out,
    .may_be_in_place = true,
    .validate = validate_unary,
    .cost = cost_unary,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_unary(const tn_context *context, const tn_unary_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_unary_class, args, err);
}

tn_status tn_unary_explain(const tn_context *context, const tn_unary_args *args, tn_decision **out,
                           tn_error *err)
{
    return tni_call_explain(context, &tni_unary_class, args, out, err);
}

tn_status tn_unary_prepare(const tn_context *context, const tn_unary_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_unary_class, args, err);
}
