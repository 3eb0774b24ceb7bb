/* reduce: sum, mean, max, min or product over some dimensions. */
#include "tenon/reduce.h"
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/dtype.h"

#include <inttypes.h>

static const char *const kinds[] = {
    [TN_REDUCE_SUM] = "sum", [TN_REDUCE_MEAN] = "mean", [TN_REDUCE_MAX] = "max",
    [TN_REDUCE_MIN] = "min", [TN_REDUCE_PROD] = "prod", [TN_REDUCE_COUNT] = NULL,
};

static uint32_t families(int32_t kind)
{
    switch (kind) {
    case TN_REDUCE_SUM:
        return TNI_DTYPE_BOOL | TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    case TN_REDUCE_PROD: return TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    case TN_REDUCE_MEAN: return TNI_DTYPE_FLOAT | TNI_DTYPE_COMPLEX;
    default: return TNI_DTYPE_BOOL | TNI_DTYPE_INTEGER | TNI_DTYPE_FLOAT;
    }
}

/* Returns the other dtype that out may have besides in's; TN_DTYPE_NONE if none. */
static tn_dtype wider(tn_dtype in)
{
    bool integer = tni_elementwise_family(in) == TNI_DTYPE_INTEGER && in != TN_I64 && in != TN_U64;
    return integer ? (tn_dtype)TN_I64 : tni_elementwise_wider(in);
}

static tn_status check_out(const tn_op *op, tn_error *err)
{
    tn_dtype in = op->operand[TN_ELEMENTWISE_IN].dtype, out = op->operand[TN_ELEMENTWISE_OUT].dtype;
    bool count = in == TN_BOOL && TN_PARAMS(op, elementwise)->kind == TN_REDUCE_SUM;
    tn_dtype usual = count ? (tn_dtype)TN_I64 : in, more = count ? TN_DTYPE_NONE : wider(in);
    if (out == usual || out == more)
        return TN_OK;
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_reduce_class.where,
                   "out of %s of %s: expected %s%s%s, got %s", tni_elementwise_kind(op),
                   tn_dtype_name(in), tn_dtype_name(usual), more ? " or " : "",
                   more ? tn_dtype_name(more) : "", tn_dtype_name(out));
}

static tn_status check_axes(const tn_op *op, tn_error *err)
{
    int32_t rank = op->operand[TN_ELEMENTWISE_IN].rank, axes = TN_PARAMS(op, elementwise)->axes;
    if (axes < (rank > 0) || axes > rank)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_reduce_class.where,
                       "axes: expected %d to %d of in's last dimensions, got %d", rank > 0,
                       (int)rank, (int)axes);
    return TN_OK;
}

static tn_status validate_reduce(tn_op *op, tn_error *err)
{
    tn_elementwise_op *each = TN_PARAMS_MUTABLE(op, elementwise);
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    tn_layout *out = &op->operand[TN_ELEMENTWISE_OUT];
    tn_status status = tni_elementwise_check_kind(op, err);
    if (!status)
        status = tni_elementwise_check_family(op, families(each->kind), err);
    if (!status)
        status = check_out(op, err);
    if (!status)
        status = check_axes(op, err);
    if (status)
        return status;
    each->size = 1;
    for (int32_t i = in->rank - each->axes; i < in->rank; i++) {
        each->size *= in->shape[i];
        out->stride[i] = 0;
    }
    each->rows = tni_layout_elements(out);
    if (each->size == 0 && each->rows > 0 &&
        (each->kind == TN_REDUCE_MAX || each->kind == TN_REDUCE_MIN))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_reduce_class.where,
                       "%s of no elements is nothing", tni_elementwise_kind(op));
    return tni_elementwise_finish(op, err);
}

/* Converts a call's out: the kept dimensions first, then a 1 for each reduced one. */
static tn_status take_out(tn_op *op, uint64_t axes, bool keep, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    tn_layout *out = &op->operand[TN_ELEMENTWISE_OUT], from = *out;
    int32_t needed = in->rank - (keep ? 0 : TN_PARAMS(op, elementwise)->axes), at = 0, kept = 0;
    if (from.rank != needed)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_reduce_class.where,
                       "out: expected %d dimensions%s, got %d", (int)needed,
                       keep ? ", with 1 for those that are reduced" : "", (int)from.rank);
    for (int32_t i = 0; i < in->rank; i++) {
        bool reduced = axes >> i & 1;
        int64_t size = reduced ? 1 : in->shape[i];
        if (reduced && !keep)
            continue;
        if (from.shape[at] != size)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_reduce_class.where,
                           "out: dimension %d: expected %" PRId64 ", got %" PRId64, (int)at, size,
                           from.shape[at]);
        if (!reduced) {
            out->shape[kept] = from.shape[at];
            out->stride[kept++] = from.stride[at];
        }
        at++;
    }
    for (; kept < in->rank; kept++) {
        out->shape[kept] = 1;
        out->stride[kept] = 0;
    }
    out->rank = in->rank;
    return TN_OK;
}

/* Sets a bit for each reduced dimension, and counts them. */
static tn_status take_axes(tn_op *op, uint64_t asked, uint64_t *out, tn_error *err)
{
    int32_t rank = op->operand[TN_ELEMENTWISE_IN].rank;
    uint64_t all = (UINT64_C(1) << rank) - 1, axes = asked ? asked : all;
    if (axes & ~all)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_reduce_class.where,
                       "axes: expected bits of in's %d dimensions, got %#" PRIx64, (int)rank, axes);
    TN_PARAMS_MUTABLE(op, elementwise)->axes = 0;
    for (int32_t i = 0; i < rank; i++)
        TN_PARAMS_MUTABLE(op, elementwise)->axes += axes >> i & 1 ? 1 : 0;
    *out = axes;
    return TN_OK;
}

tn_status tni_reduce_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_reduce_args *args = given;
    const tni_op_class *class = &tni_reduce_class;
    uint64_t axes = 0;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_reduce_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_switch(class->where, "keep", args->keep, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) = (tn_elementwise_op){.kind = args->kind};
    if (!status)
        status = take_axes(&out->op, args->axes, &axes, err);
    if (!status)
        status = take_out(&out->op, axes, args->keep, err);
    if (status)
        return status;
    tni_layout_put_last(&out->op.operand[TN_ELEMENTWISE_IN], axes);
    return tni_op_validate(&out->op, err);
}

static tn_status parse_axes(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                            tn_error *err)
{
    int64_t axes = rank;
    (void)shape;
    tn_status status = tni_fields_integer(fields, "axes", 0, &axes, err);
    TN_PARAMS_MUTABLE(op, elementwise)->axes = axes < INT32_MAX ? (int32_t)axes : INT32_MAX;
    return status;
}

static void write_axes(const tn_op *op, tni_buffer *out)
{
    tni_write_integer(out, "axes", TN_PARAMS(op, elementwise)->axes);
}

static void make_layout(const tn_op *op, int32_t index, const int64_t *shape, int32_t rank,
                        tn_layout *out)
{
    int64_t own[TN_OP_RANK_MAX];
    int32_t axes = index == TN_ELEMENTWISE_OUT ? TN_PARAMS(op, elementwise)->axes : 0;
    memcpy(own, shape, (size_t)rank * sizeof own[0]);
    for (int32_t i = axes < rank ? rank - axes : 0; i < rank; i++)
        own[i] = 1;
    tni_layout_make(out, op->operand[index].dtype, own, rank);
}

static void cost_reduce(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops =
        (double)TN_PARAMS(op, elementwise)->rows * (double)TN_PARAMS(op, elementwise)->size;
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {.kinds = kinds,
                                            .out_key = "out",
                                            .parse = parse_axes,
                                            .write = write_axes,
                                            .layout = make_layout};

const tni_op_class tni_reduce_class = {
    .kind = TN_OP_REDUCE,
    .word = "reduce",
    .fields = "kind shape axes out si so align",
    .where = "tn_reduce",
    .args = {TNI_ARGS_FORM(reduce, axes),
             .tensors = {offsetof(tn_reduce_args, in), offsetof(tn_reduce_args, out)}},
    .elementwise = &elementwise,
    .check = &tni_reduce_check,
    .make = tni_reduce_make,
    .operands = tni_elementwise_in_out,
    .validate = validate_reduce,
    .cost = cost_reduce,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_reduce(const tn_context *context, const tn_reduce_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_reduce_class, args, err);
}

tn_status tn_reduce_explain(const tn_context *context, const tn_reduce_args *args,
                            tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_reduce_class, args, out, err);
}

tn_status tn_reduce_prepare(const tn_context *context, const tn_reduce_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_reduce_class, args, err);
}
