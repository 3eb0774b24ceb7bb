/* binary: a function of two tensors, element by element. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/dtype.h"
#include "tenon/elementwise.h"

static const char *const kinds[] = {
    [TN_BINARY_ADD] = "add",  [TN_BINARY_SUB] = "sub", [TN_BINARY_MUL] = "mul",
    [TN_BINARY_DIV] = "div",  [TN_BINARY_MAX] = "max", [TN_BINARY_MIN] = "min",
    [TN_BINARY_COUNT] = NULL,
};

static const char *const operands[] = {"in", "out", "other", NULL};
static const char *const stride_keys[] = {"s2"};

static uint32_t families(int32_t kind)
{
    switch (kind) {
    case TN_BINARY_MAX:
    case TN_BINARY_MIN: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT;
    default: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    }
}

static tn_status validate_binary(tn_op *op, tn_error *err)
{
    static const int32_t inputs[] = {TN_ELEMENTWISE_IN, TN_ELEMENTWISE_OTHER};
    const tn_layout *out = &op->operand[TN_ELEMENTWISE_OUT];
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype,
             other = op->operand[TN_ELEMENTWISE_OTHER].dtype;
    tn_status status = tni_elementwise_check_kind(op, err);
    if (!status)
        status = tni_elementwise_check_family(op, families(TN_PARAMS(op, elementwise)->kind), err);
    if (!status && other != in)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_binary_class.where,
                         "other: expected the dtype of in, %s, got %s", tn_dtype_name(in),
                         tn_dtype_name(other));
    if (!status)
        status = tni_elementwise_check_out(op, err);
    for (size_t i = 0; i < 2 && !status; i++)
        status = tni_layout_broadcast(&op->operand[inputs[i]], out->shape, out->rank,
                                      tni_binary_class.where, operands[inputs[i]], err);
    return status ? status : tni_elementwise_finish(op, err);
}

tn_status tni_binary_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_binary_args *args = given;
    const tni_op_class *class = &tni_binary_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_binary_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out, args->other};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) = (tn_elementwise_op){.kind = args->kind};
    return status ? status : tni_op_validate(&out->op, err);
}

static const tni_elementwise elementwise = {
    .kinds = kinds, .stride_keys = stride_keys, .out_key = "out"};

const tni_op_class tni_binary_class = {
    .kind = TN_OP_BINARY,
    .word = "binary",
    .fields = "kind shape out si s2 so inplace align",
    .where = "tn_binary",
    .args = {TNI_ARGS_FORM(binary, kind),
             .tensors = {offsetof(tn_binary_args, in), offsetof(tn_binary_args, out),
                         offsetof(tn_binary_args, other)}},
    .elementwise = &elementwise,
    .check = &tni_binary_check,
    .make = tni_binary_make,
    .operands = operands,
    .may_be_in_place = true,
    .validate = validate_binary,
    .cost = tni_elementwise_cost_simple,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_binary(const tn_context *context, const tn_binary_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_binary_class, args, err);
}

tn_status tn_binary_explain(const tn_context *context, const tn_binary_args *args,
                            tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_binary_class, args, out, err);
}

tn_status tn_binary_prepare(const tn_context *context, const tn_binary_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_binary_class, args, err);
}
