/* rotary: rotary position embedding. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/norm.h"
#include <inttypes.h>

static const char *const kinds[] = {
    [TN_ROTARY_HALVES] = "halves", [TN_ROTARY_PAIRS] = "pairs", [TN_ROTARY_COUNT] = NULL};

static const char *const operands[] = {"in", "out", "cos", "sin", NULL};
static const char *const stride_keys[] = {"scos", "ssin"};

static tn_status validate_angles(tn_op *op, int32_t index, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    int64_t shape[TN_OP_RANK_MAX];
    tn_status status = tni_elementwise_check_table(op, index, err);
    if (status)
        return status;
    memcpy(shape, in->shape, sizeof shape);
    shape[in->rank - 1] = TN_PARAMS(op, elementwise)->size / 2;
    return tni_layout_broadcast(&op->operand[index], shape, in->rank, tni_rotary_class.where,
                                operands[index], err);
}

static tn_status validate_rotary(tn_op *op, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    int64_t size = TN_PARAMS(op, elementwise)->size;
    tn_status status = tni_elementwise_check_rows(op, err);
    if (status)
        return status;
    int64_t last = in->shape[in->rank - 1];
    if (size < 0 || size > last || size % 2)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_rotary_class.where,
                       "size: expected an even number up to in's last dimension, %" PRId64
                       ", got %" PRId64,
                       last, size);
    status = validate_angles(op, TN_ROTARY_COS, err);
    if (!status)
        status = validate_angles(op, TN_ROTARY_SIN, err);
    return status ? status : tni_elementwise_finish_rows(op, err);
}

tn_status tni_rotary_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_rotary_args *args = given;
    const tni_op_class *class = &tni_rotary_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_rotary_args, workspace_bytes), err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out, args->cos, args->sin};
    status = tni_problem_init(out, class, tensors, err);
    if (status)
        return status;
    const tn_layout *in = &out->op.operand[TN_ELEMENTWISE_IN];
    int64_t whole = in->rank > 0 ? in->shape[in->rank - 1] : 0;
    *TN_PARAMS_MUTABLE(&out->op, elementwise) =
        (tn_elementwise_op){.kind = args->kind, .size = args->size ? args->size : whole};
    return tni_op_validate(&out->op, err);
}

static tn_status parse_size(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                            tn_error *err)
{
    int64_t *size = &TN_PARAMS_MUTABLE(op, elementwise)->size;
    tn_status status = tni_fields_integer(fields, "size", 0, size, err);
    *size = *size ? *size : shape[rank - 1];
    return status;
}

static void write_size(const tn_op *op, tni_buffer *out)
{
    if (op->uses & TN_ELEMENTWISE_USES_PARTIAL)
        tni_write_integer(out, "size", TN_PARAMS(op, elementwise)->size);
}

static void make_layout(const tn_op *op, int32_t index, const int64_t *shape, int32_t rank,
                        tn_layout *out)
{
    int64_t own[TN_OP_RANK_MAX];
    bool angles = index >= TN_ROTARY_COS;
    memcpy(own, shape, (size_t)rank * sizeof own[0]);
    if (angles)
        own[rank - 1] = TN_PARAMS(op, elementwise)->size / 2;
    tni_layout_make(out, op->operand[index].dtype, own, rank);
    for (int32_t i = 0; i < rank - 2 && angles; i++)
        out->stride[i] = 0;
}

static uint64_t uses_of_size(const tn_op *op)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    return TN_PARAMS(op, elementwise)->size < in->shape[in->rank - 1] ? TN_ELEMENTWISE_USES_PARTIAL
                                                                      : 0;
}

static void cost_rotary(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops =
        3.0 * (double)TN_PARAMS(op, elementwise)->rows * (double)TN_PARAMS(op, elementwise)->size;
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {.kinds = kinds,
                                            .stride_keys = stride_keys,
                                            .out_key = "out",
                                            .needs_rank = true,
                                            .tables = TNI_TABLES_PRESENT,
                                            .parse = parse_size,
                                            .write = write_size,
                                            .layout = make_layout,
                                            .uses = uses_of_size};

const tni_op_class tni_rotary_class = {
    .kind = TN_OP_ROTARY,
    .word = "rotary",
    .fields = "kind shape size cos sin out si so scos ssin inplace align",
    .where = "tn_rotary",
    .args = {TNI_ARGS_FORM(rotary, size),
             .tensors = {offsetof(tn_rotary_args, in), offsetof(tn_rotary_args, out),
                         offsetof(tn_rotary_args, cos), offsetof(tn_rotary_args, sin)}},
    .elementwise = &elementwise,
    .check = &tni_rotary_check,
    .make = tni_rotary_make,
    .operands = operands,
    .may_be_in_place = true,
    .validate = validate_rotary,
    .cost = cost_rotary,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_rotary(const tn_context *context, const tn_rotary_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_rotary_class, args, err);
}

tn_status tn_rotary_explain(const tn_context *context, const tn_rotary_args *args,
                            tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_rotary_class, args, out, err);
}

tn_status tn_rotary_prepare(const tn_context *context, const tn_rotary_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_rotary_class, args, err);
}
