/* softmax along one dimension, or its logarithm. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/reduce.h"

static tn_status validate_softmax(tn_op *op, tn_error *err)
{
    tn_status status = tni_elementwise_check_rows(op, err);
    if (status)
        return status;
    TN_PARAMS_MUTABLE(op, elementwise)->size =
        op->operand[TN_ELEMENTWISE_IN].shape[op->operand[TN_ELEMENTWISE_IN].rank - 1];
    return tni_elementwise_finish_rows(op, err);
}

tn_status tni_softmax_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_softmax_args *args = given;
    const tni_op_class *class = &tni_softmax_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_softmax_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_switch(class->where, "log", args->log, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) = (tn_elementwise_op){0};
    if (!status)
        status = tni_elementwise_check_rank(&out->op, err);
    if (!status)
        status = tni_elementwise_check_shape(&out->op, err);
    if (status)
        return status;
    int32_t rank = out->op.operand[TN_ELEMENTWISE_IN].rank;
    if (args->axis < 0 || args->axis >= rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                       "axis counts from the last dimension: expected 0 to %d, got %d",
                       (int)rank - 1, (int)args->axis);
    for (int32_t i = TN_ELEMENTWISE_IN; i <= TN_ELEMENTWISE_OUT; i++)
        tni_layout_put_last(&out->op.operand[i], UINT64_C(1) << (rank - 1 - args->axis));
    out->op.uses |= args->log ? TN_ELEMENTWISE_USES_LOG : 0;
    return tni_op_validate(&out->op, err);
}

static tn_status parse_log(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                           tn_error *err)
{
    int64_t log = 0;
    (void)shape, (void)rank;
    tn_status status = tni_fields_switch(fields, "log", &log, err);
    op->uses |= log ? TN_ELEMENTWISE_USES_LOG : 0;
    return status;
}

static void write_log(const tn_op *op, tni_buffer *out)
{
    if (op->uses & TN_ELEMENTWISE_USES_LOG)
        tni_write_integer(out, "log", 1);
}

static void cost_softmax(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = 14.0 * (double)TN_PARAMS(op, elementwise)->elements;
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {
    .out_key = "out", .needs_rank = true, .parse = parse_log, .write = write_log};

const tni_op_class tni_softmax_class = {
    .kind = TN_OP_SOFTMAX,
    .word = "softmax",
    .fields = "shape log out si so inplace align",
    .where = "tn_softmax",
    .args = {TNI_ARGS_FORM(softmax, axis),
             .tensors = {offsetof(tn_softmax_args, in), offsetof(tn_softmax_args, out)}},
    .elementwise = &elementwise,
    .check = &tni_softmax_check,
    .make = tni_softmax_make,
    .operands = tni_elementwise_in_out,
    .may_be_in_place = true,
    .validate = validate_softmax,
    .cost = cost_softmax,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_softmax(const tn_context *context, const tn_softmax_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_softmax_class, args, err);
}

tn_status tn_softmax_explain(const tn_context *context, const tn_softmax_args *args,
                             tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_softmax_class, args, out, err);
}

tn_status tn_softmax_prepare(const tn_context *context, const tn_softmax_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_softmax_class, args, err);
}
