/* norm and rotary: their descriptors and their checks. */
#include "norm.h"

#include "each.h"

#include <float.h>
#include <inttypes.h>

static const char *const norm_operands[] = {"in", "out", "weight", "bias", NULL};
static const char *const rotary_operands[] = {"in", "out", "cos", "sin", NULL};

static tn_status check_rows(const tn_op *op, tn_error *err)
{
    tn_status status = tni_each_check_kind(op, err);
    if (!status)
        status = tni_each_check_floats(op, err);
    if (!status)
        status = tni_each_check_out(op, err);
    if (!status)
        status = tni_each_check_rank(op, err);
    if (!status)
        status = tni_each_check_shape(op, err);
    return status;
}

/* One row that serves all of them. */
static tn_status settle_row(tn_op *op, int32_t index, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_EACH_IN];
    tn_layout *row = &op->operand[index];
    const char *name = norm_operands[index];
    int64_t found = row->rank ? row->shape[row->rank - 1] : 1;
    int32_t missing = in->rank - row->rank;
    if (!row->dtype)
        return TN_OK;
    if (row->rank < 1 || found != in->shape[in->rank - 1])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_norm_class.where,
                       "%s needs %" PRId64 " elements, as many as a row of in, found %" PRId64,
                       name, in->shape[in->rank - 1], found);
    tn_status status = tni_each_check_table(op, index, err);
    if (!status)
        status = tni_layout_broadcast(row, in->shape, in->rank, tni_norm_class.where, name, err);
    bool empty = tni_layout_elements(row) == 0;
    for (int32_t i = 0; i < in->rank - 1 && !status && !empty; i++) {
        if (row->shape[i] > 1 && row->stride[i] != 0)
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_norm_class.where,
                             "%s: dimension %d needs 1, as one row serves all, found %" PRId64,
                             name, (int)(i - missing), row->shape[i]);
    }
    return status;
}

static tn_status settle_norm(tn_op *op, tn_error *err)
{
    double epsilon = op->as.each.value;
    tn_status status = check_rows(op, err);
    if (!status && !(epsilon >= 0 && epsilon <= DBL_MAX))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_norm_class.where,
                         "epsilon needs a number from 0 on, found %g", epsilon);
    if (!status)
        status = settle_row(op, TN_NORM_WEIGHT, err);
    if (!status)
        status = settle_row(op, TN_NORM_BIAS, err);
    if (status)
        return status;
    op->as.each.size = op->operand[TN_EACH_IN].shape[op->operand[TN_EACH_IN].rank - 1];
    return tni_each_finish_rows(op, err);
}

static tn_status settle_angles(tn_op *op, int32_t index, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_EACH_IN];
    int64_t shape[TN_OP_RANK_MAX];
    tn_status status = tni_each_check_table(op, index, err);
    if (status)
        return status;
    memcpy(shape, in->shape, sizeof shape);
    shape[in->rank - 1] = op->as.each.size / 2;
    return tni_layout_broadcast(&op->operand[index], shape, in->rank, tni_rotary_class.where,
                                rotary_operands[index], err);
}

static tn_status settle_rotary(tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_EACH_IN];
    int64_t size = op->as.each.size;
    tn_status status = check_rows(op, err);
    if (status)
        return status;
    int64_t last = in->shape[in->rank - 1];
    if (size < 0 || size > last || size % 2)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_rotary_class.where,
                       "size needs an even number up to in's last dimension, %" PRId64
                       ", found %" PRId64,
                       last, size);
    status = settle_angles(op, TN_ROTARY_COS, err);
    if (!status)
        status = settle_angles(op, TN_ROTARY_SIN, err);
    return status ? status : tni_each_finish_rows(op, err);
}

tn_status tni_norm_make(const tn_norm_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_norm_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_norm_args, workspace_bytes), err);
    if (!status)
        status = tni_each_reserved(class->where, "set", args->set & ~TN_NORM_SET_EPSILON, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out, args->weight, args->bias};
    bool meant = args->epsilon != 0 || args->set & TN_NORM_SET_EPSILON;
    status = tni_problem_begin(out, class, tensors, err);
    out->op.as.each =
        (tn_each_op){.kind = args->kind, .value = meant ? args->epsilon : TNI_NORM_EPSILON};
    return status ? status : tni_op_settle(&out->op, err);
}

tn_status tni_rotary_make(const tn_rotary_args *args, tni_problem *out, tn_error *err)
{
    const tni_op_class *class = &tni_rotary_class;
    tn_status status =
        tni_each_args(class->where, args, TN_UP_TO(tn_rotary_args, workspace_bytes), err);
    if (!status)
        status = tni_each_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out, args->cos, args->sin};
    status = tni_problem_begin(out, class, tensors, err);
    if (status)
        return status;
    const tn_layout *in = &out->op.operand[TN_EACH_IN];
    int64_t whole = in->rank > 0 ? in->shape[in->rank - 1] : 0;
    out->op.as.each = (tn_each_op){.kind = args->kind, .size = args->size ? args->size : whole};
    return tni_op_settle(&out->op, err);
}

static void cost_norm(const tn_op *op, double *out_flops, double *out_bytes)
{
    double each = op->as.each.kind == TN_NORM_LAYER ? 5 : 3;
    each += op->operand[TN_NORM_WEIGHT].dtype ? 1 : 0;
    each += op->operand[TN_NORM_BIAS].dtype ? 1 : 0;
    *out_flops = each * (double)op->as.each.elements;
    *out_bytes = tni_each_bytes(op);
}

static void cost_rotary(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = 3.0 * (double)op->as.each.rows * (double)op->as.each.size;
    *out_bytes = tni_each_bytes(op);
}

const tni_op_class tni_norm_class = {
    .kind = TN_OP_NORM,
    .word = "norm",
    .where = "tn_norm",
    .args = {TNI_ARGS_FORM(norm, epsilon),
             .tensors = {offsetof(tn_norm_args, in), offsetof(tn_norm_args, out),
                         offsetof(tn_norm_args, weight), offsetof(tn_norm_args, bias)}},
    .operands = norm_operands,
    .optional = 1U << TN_NORM_WEIGHT | 1U << TN_NORM_BIAS,
    .may_be_in_place = true,
    .settle = settle_norm,
    .cost = cost_norm,
    TNI_EACH_CLASS};

const tni_op_class tni_rotary_class = {
    .kind = TN_OP_ROTARY,
    .word = "rotary",
    .where = "tn_rotary",
    .args = {TNI_ARGS_FORM(rotary, size),
             .tensors = {offsetof(tn_rotary_args, in), offsetof(tn_rotary_args, out),
                         offsetof(tn_rotary_args, cos), offsetof(tn_rotary_args, sin)}},
    .operands = rotary_operands,
    .may_be_in_place = true,
    .settle = settle_rotary,
    .cost = cost_rotary,
    TNI_EACH_CLASS};
