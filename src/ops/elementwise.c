/* permute, cast, fill, unary and binary: their descriptors and their checks. */
#include "elementwise.h"

#include "each.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const binary_operands[] = {"in", "out", "other", NULL};

static tn_status settle_permute(tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_EACH_IN].dtype, out = op->operand[TN_EACH_OUT].dtype;
    if (in != out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_permute_class.where,
                       "out needs the dtype of in, %s, found %s; tn_cast changes dtypes",
                       tn_dtype_name(in), tn_dtype_name(out));
    tn_status status = tni_each_check_shape(op, err);
    return status ? status : tni_each_finish(op, err);
}

static tn_status settle_cast(tn_op *op, tn_error *err)
{
    tn_status status = tni_each_check_shape(op, err);
    return status ? status : tni_each_finish(op, err);
}

static tn_status settle_fill(tn_op *op, tn_error *err)
{
    tn_dtype out = op->operand[TN_EACH_OUT].dtype;
    bool complex = tni_each_family(out) == TNI_DTYPE_COMPLEX;
    if (!complex && op->as.each.imaginary != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_fill_class.where,
                       "imaginary needs complex numbers in out, found %s", tn_dtype_name(out));
    if (!complex)
        op->as.each.imaginary = 0; /* without a sign */
    return tni_each_finish(op, err);
}

/* Families of dtypes that a function is defined for: those that the reference computes. */
static uint32_t unary_families(int32_t kind)
{
    switch (kind) {
    case TN_UNARY_NEG: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    case TN_UNARY_ABS:
    case TN_UNARY_RELU: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT;
    default: return TNI_DTYPE_FLOAT;
    }
}

static uint32_t binary_families(int32_t kind)
{
    switch (kind) {
    case TN_BINARY_MAX:
    case TN_BINARY_MIN: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT;
    default: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    }
}

static tn_status settle_unary(tn_op *op, tn_error *err)
{
    tn_status status = tni_each_check_kind(op, err);
    if (!status)
        status = tni_each_check_family(op, unary_families(op->as.each.kind), err);
    if (!status)
        status = tni_each_check_out(op, err);
    if (!status)
        status = tni_each_check_shape(op, err);
    return status ? status : tni_each_finish(op, err);
}

static tn_status settle_binary(tn_op *op, tn_error *err)
{
    static const int32_t inputs[] = {TN_EACH_IN, TN_EACH_OTHER};
    const tn_layout *out = &op->operand[TN_EACH_OUT];
    tn_dtype in = op->operand[TN_EACH_IN].dtype, other = op->operand[TN_EACH_OTHER].dtype;
    tn_status status = tni_each_check_kind(op, err);
    if (!status)
        status = tni_each_check_family(op, binary_families(op->as.each.kind), err);
    if (!status && other != in)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_binary_class.where,
                         "other needs the dtype of in, %s, found %s", tn_dtype_name(in),
                         tn_dtype_name(other));
    if (!status)
        status = tni_each_check_out(op, err);
    for (size_t i = 0; i < 2 && !status; i++)
        status = tni_layout_broadcast(&op->operand[inputs[i]], out->shape, out->rank,
                                      tni_binary_class.where, binary_operands[inputs[i]], err);
    return status ? status : tni_each_finish(op, err);
}

tn_status tni_permute_order(tn_layout *in, const int32_t *order, int32_t count, tn_error *err)
{
    const char *where = tni_permute_class.where;
    tn_layout from = *in;
    uint32_t seen = 0;
    if (count != in->rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "order needs %d numbers, one for each dimension of in, found %d",
                       (int)in->rank, (int)count);
    for (int32_t i = 0; i < count; i++) {
        if (order[i] < 0 || order[i] >= count)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "order[%d] needs a dimension of in, 0 to %d, found %d", (int)i,
                           (int)count - 1, (int)order[i]);
        if (seen >> order[i] & 1)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "order[%d] is %d, which stands there before", (int)i, (int)order[i]);
        seen |= UINT32_C(1) << order[i];
        from.shape[i] = in->shape[order[i]];
        from.stride[i] = in->stride[order[i]];
    }
    *in = from;
    return TN_OK;
}

tn_status tni_permute_make(const tn_permute_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_permute_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_permute_args, workspace_bytes), err);
    if (!status)
        status = tni_each_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (!status && !args->order && args->order_count)
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                         "order is NULL, and order_count is %d", (int)args->order_count);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_begin(out, class, tensors, err);
    out->op.as.each = (tn_each_op){0};
    if (!status && args->order)
        status =
            tni_permute_order(&out->op.operand[TN_EACH_IN], args->order, args->order_count, err);
    return status ? status : tni_op_settle(&out->op, err);
}

tn_status tni_cast_make(const tn_cast_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_cast_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_cast_args, workspace_bytes), err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_begin(out, class, tensors, err);
    out->op.as.each = (tn_each_op){0};
    return status ? status : tni_op_settle(&out->op, err);
}

tn_status tni_fill_make(const tn_fill_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_fill_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_fill_args, workspace_bytes), err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {NULL, args->out};
    status = tni_problem_begin(out, class, tensors, err);
    out->op.as.each = (tn_each_op){.value = args->value, .imaginary = args->imaginary};
    return status ? status : tni_op_settle(&out->op, err);
}

tn_status tni_unary_make(const tn_unary_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_unary_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_unary_args, workspace_bytes), err);
    if (!status)
        status = tni_each_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_begin(out, class, tensors, err);
    out->op.as.each = (tn_each_op){.kind = args->kind};
    return status ? status : tni_op_settle(&out->op, err);
}

tn_status tni_binary_make(const tn_binary_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_binary_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_binary_args, workspace_bytes), err);
    if (!status)
        status = tni_each_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out, args->other};
    status = tni_problem_begin(out, class, tensors, err);
    out->op.as.each = (tn_each_op){.kind = args->kind};
    return status ? status : tni_op_settle(&out->op, err);
}

static void cost_move(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = op->kind == TN_OP_CAST ? (double)op->as.each.elements : 0;
    *out_bytes = tni_each_bytes(op);
}

static void cost_compute(const tn_op *op, double *out_flops, double *out_bytes)
{
    int32_t kind = op->as.each.kind;
    bool simple = op->kind == TN_OP_BINARY || kind == TN_UNARY_NEG || kind == TN_UNARY_ABS ||
                  kind == TN_UNARY_RELU;
    *out_flops = (double)op->as.each.elements * (simple ? 1 : 10);
    *out_bytes = tni_each_bytes(op);
}

const tni_op_class tni_permute_class = {
    .kind = TN_OP_PERMUTE,
    .word = "permute",
    .where = "tn_permute",
    .args = {TNI_ARGS_FORM(permute, order_count),
             .tensors = {offsetof(tn_permute_args, in), offsetof(tn_permute_args, out)},
             .list = offsetof(tn_permute_args, order)},
    .operands = tni_each_in_out,
    .settle = settle_permute,
    .cost = cost_move,
    TNI_EACH_CLASS};

const tni_op_class tni_cast_class = {
    .kind = TN_OP_CAST,
    .word = "cast",
    .where = "tn_cast",
    .args = {TNI_ARGS_FORM(cast, stream),
             .tensors = {offsetof(tn_cast_args, in), offsetof(tn_cast_args, out)}},
    .operands = tni_each_in_out,
    .may_be_in_place = true,
    .settle = settle_cast,
    .cost = cost_move,
    TNI_EACH_CLASS};

const tni_op_class tni_fill_class = {
    .kind = TN_OP_FILL,
    .word = "fill",
    .where = "tn_fill",
    .args = {TNI_ARGS_FORM(fill, value), .tensors = {0, offsetof(tn_fill_args, out)}},
    .operands = tni_each_in_out,
    .optional = 1U << TN_EACH_IN,
    .settle = settle_fill,
    .cost = cost_move,
    TNI_EACH_CLASS};

const tni_op_class tni_unary_class = {
    .kind = TN_OP_UNARY,
    .word = "unary",
    .where = "tn_unary",
    .args = {TNI_ARGS_FORM(unary, kind),
             .tensors = {offsetof(tn_unary_args, in), offsetof(tn_unary_args, out)}},
    .operands = tni_each_in_out,
    .may_be_in_place = true,
    .settle = settle_unary,
    .cost = cost_compute,
    TNI_EACH_CLASS};

const tni_op_class tni_binary_class = {
    .kind = TN_OP_BINARY,
    .word = "binary",
    .where = "tn_binary",
    .args = {TNI_ARGS_FORM(binary, kind),
             .tensors = {offsetof(tn_binary_args, in), offsetof(tn_binary_args, out),
                         offsetof(tn_binary_args, other)}},
    .operands = binary_operands,
    .may_be_in_place = true,
    .settle = settle_binary,
    .cost = cost_compute,
    TNI_EACH_CLASS};
