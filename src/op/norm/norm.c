/* norm: layer normalization and RMS normalization. */
#include "tenon/norm.h"
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include <float.h>
#include <inttypes.h>

static const char *const kinds[] = {
    [TN_NORM_LAYER] = "layer", [TN_NORM_RMS] = "rms", [TN_NORM_COUNT] = NULL};

static const char *const operands[] = {"in", "out", "weight", "bias", NULL};
static const char *const stride_keys[] = {"sweight", "sbias"};

static const double default_epsilon = 1e-5;

/* Checks weight or bias, one row that is broadcast to all rows of in. */
static tn_status validate_row(tn_op *op, int32_t index, tn_error *err)
{
    const tn_layout *in = &op->operand[TN_ELEMENTWISE_IN];
    tn_layout *row = &op->operand[index];
    const char *name = operands[index];
    int64_t found = row->rank ? row->shape[row->rank - 1] : 1;
    int32_t missing = in->rank - row->rank;
    if (!row->dtype)
        return TN_OK;
    if (row->rank < 1 || found != in->shape[in->rank - 1])
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_norm_class.where,
                       "%s: expected %" PRId64 " elements, as many as a row of in, got %" PRId64,
                       name, in->shape[in->rank - 1], found);
    tn_status status = tni_elementwise_check_table(op, index, err);
    if (!status)
        status = tni_layout_broadcast(row, in->shape, in->rank, tni_norm_class.where, name, err);
    bool empty = tni_layout_elements(row) == 0;
    for (int32_t i = 0; i < in->rank - 1 && !status && !empty; i++) {
        if (row->shape[i] > 1 && row->stride[i] != 0)
            status = tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_norm_class.where,
                             "%s: dimension %d: expected 1 (one row for all), got %" PRId64, name,
                             (int)(i - missing), row->shape[i]);
    }
    return status;
}

static tn_status validate_norm(tn_op *op, tn_error *err)
{
    double epsilon = TN_PARAMS(op, elementwise)->value;
    tn_status status = tni_elementwise_check_rows(op, err);
    if (!status && !(epsilon >= 0 && epsilon <= DBL_MAX))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_norm_class.where,
                         "epsilon: expected a finite number of at least 0, got %g", epsilon);
    if (!status)
        status = validate_row(op, TN_NORM_WEIGHT, err);
    if (!status)
        status = validate_row(op, TN_NORM_BIAS, err);
    if (status)
        return status;
    TN_PARAMS_MUTABLE(op, elementwise)->size =
        op->operand[TN_ELEMENTWISE_IN].shape[op->operand[TN_ELEMENTWISE_IN].rank - 1];
    return tni_elementwise_finish_rows(op, err);
}

tn_status tni_norm_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_norm_args *args = given;
    const tni_op_class *class = &tni_norm_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_norm_args, workspace_bytes), err);
    if (!status)
        status =
            tni_elementwise_reserved(class->where, "set", args->set & ~TN_NORM_SET_EPSILON, err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out, args->weight, args->bias};
    bool meant = args->epsilon != 0 || args->set & TN_NORM_SET_EPSILON;
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) =
        (tn_elementwise_op){.kind = args->kind, .value = meant ? args->epsilon : default_epsilon};
    return status ? status : tni_op_validate(&out->op, err);
}

static tn_status parse_epsilon(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                               tn_error *err)
{
    (void)shape, (void)rank;
    TN_PARAMS_MUTABLE(op, elementwise)->value = default_epsilon;
    return tni_fields_real(fields, "eps", &TN_PARAMS_MUTABLE(op, elementwise)->value, err);
}

static void write_epsilon(const tn_op *op, tni_buffer *out)
{
    if (TN_PARAMS(op, elementwise)->value != default_epsilon)
        tni_write_real(out, "eps", TN_PARAMS(op, elementwise)->value);
}

static void make_layout(const tn_op *op, int32_t index, const int64_t *shape, int32_t rank,
                        tn_layout *out)
{
    tni_layout_make(out, op->operand[index].dtype, shape, rank);
    for (int32_t i = 0; i < rank - 1 && index >= TN_NORM_WEIGHT; i++)
        out->stride[i] = 0;
}

static uint64_t uses_of_rows(const tn_op *op)
{
    return (op->operand[TN_NORM_WEIGHT].dtype ? TN_ELEMENTWISE_USES_WEIGHT : 0) |
           (op->operand[TN_NORM_BIAS].dtype ? TN_ELEMENTWISE_USES_BIAS : 0);
}

static void cost_norm(const tn_op *op, double *out_flops, double *out_bytes)
{
    double each = TN_PARAMS(op, elementwise)->kind == TN_NORM_LAYER ? 5 : 3;
    each += op->operand[TN_NORM_WEIGHT].dtype ? 1 : 0;
    each += op->operand[TN_NORM_BIAS].dtype ? 1 : 0;
    *out_flops = each * (double)TN_PARAMS(op, elementwise)->elements;
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {.kinds = kinds,
                                            .stride_keys = stride_keys,
                                            .out_key = "out",
                                            .needs_rank = true,
                                            .rows_from = TN_NORM_WEIGHT,
                                            .tables = TNI_TABLES_OPTIONAL,
                                            .parse = parse_epsilon,
                                            .write = write_epsilon,
                                            .layout = make_layout,
                                            .uses = uses_of_rows};

const tni_op_class tni_norm_class = {
    .kind = TN_OP_NORM,
    .word = "norm",
    .fields = "kind shape eps weight bias out si so sweight sbias inplace align",
    .where = "tn_norm",
    .args = {TNI_ARGS_FORM(norm, epsilon),
             .tensors = {offsetof(tn_norm_args, in), offsetof(tn_norm_args, out),
                         offsetof(tn_norm_args, weight), offsetof(tn_norm_args, bias)}},
    .elementwise = &elementwise,
    .check = &tni_norm_check,
    .make = tni_norm_make,
    .operands = operands,
    .optional = 1U << TN_NORM_WEIGHT | 1U << TN_NORM_BIAS,
    .may_be_in_place = true,
    .validate = validate_norm,
    .cost = cost_norm,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_norm(const tn_context *context, const tn_norm_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_norm_class, args, err);
}

tn_status tn_norm_explain(const tn_context *context, const tn_norm_args *args, tn_decision **out,
                          tn_error *err)
{
    return tni_call_explain(context, &tni_norm_class, args, out, err);
}

tn_status tn_norm_prepare(const tn_context *context, const tn_norm_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_norm_class, args, err);
}
