/* fill: one number in every element. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/dtype.h"
#include "tenon/elementwise.h"

static tn_status validate_fill(tn_op *op, tn_error *err)
{
    tn_dtype out = op->operand[TN_ELEMENTWISE_OUT].dtype;
    bool complex = tni_elementwise_family(out) == TNI_DTYPE_COMPLEX;
    if (!complex && TN_PARAMS(op, elementwise)->imaginary != 0)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, tni_fill_class.where,
                       "imaginary: expected complex numbers in out, got %s", tn_dtype_name(out));
    if (!complex)
        TN_PARAMS_MUTABLE(op, elementwise)->imaginary = 0; /* positive zero */
    return tni_elementwise_finish(op, err);
}

tn_status tni_fill_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_fill_args *args = given;
    const tni_op_class *class = &tni_fill_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_fill_args, workspace_bytes), err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {NULL, args->out};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) =
        (tn_elementwise_op){.value = args->value, .imaginary = args->imaginary};
    return status ? status : tni_op_validate(&out->op, err);
}

static tn_status parse_value(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                             tn_error *err)
{
    (void)shape, (void)rank;
    tn_status status =
        tni_fields_real(fields, "value", &TN_PARAMS_MUTABLE(op, elementwise)->value, err);
    return status ? status
                  : tni_fields_real(fields, "imaginary",
                                    &TN_PARAMS_MUTABLE(op, elementwise)->imaginary, err);
}

static void write_value(const tn_op *op, tni_buffer *out)
{
    tni_write_real(out, "value", TN_PARAMS(op, elementwise)->value);
    if (tni_elementwise_family(op->operand[TN_ELEMENTWISE_OUT].dtype) == TNI_DTYPE_COMPLEX)
        tni_write_real(out, "imaginary", TN_PARAMS(op, elementwise)->imaginary);
}

static void cost_move(const tn_op *op, double *out_flops, double *out_bytes)
{
    *out_flops = 0;
    *out_bytes = tni_elementwise_bytes(op);
}

static const tni_elementwise elementwise = {
    .has_no_input = true, .parse = parse_value, .write = write_value};

const tni_op_class tni_fill_class = {
    .kind = TN_OP_FILL,
    .word = "fill",
    .fields = "shape value imaginary so align",
    .where = "tn_fill",
    .args = {TNI_ARGS_FORM(fill, value), .tensors = {0, offsetof(tn_fill_args, out)}},
    .elementwise = &elementwise,
    .check = &tni_fill_check,
    .make = tni_fill_make,
    .operands = tni_elementwise_in_out,
    .optional = 1U << TN_ELEMENTWISE_IN,
    .validate = validate_fill,
    .cost = cost_move,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_fill(const tn_context *context, const tn_fill_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_fill_class, args, err);
}

tn_status tn_fill_explain(const tn_context *context, const tn_fill_args *args, tn_decision **out,
                          tn_error *err)
{
    return tni_call_explain(context, &tni_fill_class, args, out, err);
}

tn_status tn_fill_prepare(const tn_context *context, const tn_fill_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_fill_class, args, err);
}
