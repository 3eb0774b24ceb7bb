/* permute: a copy with permuted dimensions. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/dtype.h"
#include "tenon/elementwise.h"

static tn_status validate_permute(tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype, out = op->operand[TN_ELEMENTWISE_OUT].dtype;
    if (in != out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_permute_class.where,
                       "out: expected the dtype of in, %s, got %s; tn_cast changes dtypes",
                       tn_dtype_name(in), tn_dtype_name(out));
    tn_status status = tni_elementwise_check_shape(op, err);
    return status ? status : tni_elementwise_finish(op, err);
}

/* Permutes in's dimensions to out's order. */
static tn_status permute_dims(tn_layout *in, const int32_t *order, int32_t count, tn_error *err)
{
    const char *where = tni_permute_class.where;
    tn_layout from = *in;
    uint32_t seen = 0;
    if (count != in->rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "order: expected %d numbers, one for each dimension of in, got %d",
                       (int)in->rank, (int)count);
    for (int32_t i = 0; i < count; i++) {
        if (order[i] < 0 || order[i] >= count)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "order[%d]: expected a dimension of in, 0 to %d, got %d", (int)i,
                           (int)count - 1, (int)order[i]);
        if (seen >> order[i] & 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "order[%d] is %d: duplicate dimension", (int)i, (int)order[i]);
        seen |= UINT32_C(1) << order[i];
        from.shape[i] = in->shape[order[i]];
        from.stride[i] = in->stride[order[i]];
    }
    *in = from;
    return TN_OK;
}

tn_status tni_permute_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_permute_args *args = given;
    const tni_op_class *class = &tni_permute_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_permute_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (!status && !args->order && args->order_count)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                         "order is NULL, and order_count is %d", (int)args->order_count);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) = (tn_elementwise_op){0};
    if (!status && args->order)
        status =
            permute_dims(&out->op.operand[TN_ELEMENTWISE_IN], args->order, args->order_count, err);
    return status ? status : tni_op_validate(&out->op, err);
}

/* Parses the order in which out has in's dimensions, if the text has one: permutes in,
 * and makes out dense with in's new shape. */
static tn_status parse_order(tni_fields *fields, tn_op *op, tn_error *err)
{
    tn_layout *in = &op->operand[TN_ELEMENTWISE_IN], *out = &op->operand[TN_ELEMENTWISE_OUT];
    int64_t numbers[TN_OP_RANK_MAX];
    int32_t order[TN_OP_RANK_MAX], count = -1;
    tn_error why;
    tn_status status =
        tni_fields_list(fields, "order", ';', 0, numbers, TN_OP_RANK_MAX, &count, err);
    if (status || count < 0)
        return status;
    for (int32_t i = 0; i < count; i++)
        order[i] = numbers[i] < INT32_MAX ? (int32_t)numbers[i] : INT32_MAX;
    if (permute_dims(in, order, count, &why))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "problem", "%.120s: %s", fields->problem,
                       why.message);
    tni_layout_make(out, out->dtype, in->shape, in->rank);
    return TN_OK;
}

static void cost_move(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = 0;
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {.parse_layouts = parse_order};

const tni_op_class tni_permute_class = {
    .kind = TN_OP_PERMUTE,
    .word = "permute",
    .fields = "shape order si so align",
    .where = "tn_permute",
    .args = {TNI_ARGS_FORM(permute, order_count),
             .tensors = {offsetof(tn_permute_args, in), offsetof(tn_permute_args, out)},
             .list = offsetof(tn_permute_args, order)},
    .elementwise = &elementwise,
    .check = &tni_permute_check,
    .make = tni_permute_make,
    .operands = tni_elementwise_in_out,
    .validate = validate_permute,
    .cost = cost_move,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_permute(const tn_context *context, const tn_permute_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_permute_class, args, err);
}

tn_status tn_permute_explain(const tn_context *context, const tn_permute_args *args,
                             tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_permute_class, args, out, err);
}

tn_status tn_permute_prepare(const tn_context *context, const tn_permute_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_permute_class, args, err);
}
