/* cast: conversion to another dtype. */
#include "dispatch/call.h"
#include "op/elementwise.h"
#include "op/op_check.h"
#include "tenon/elementwise.h"

static tn_status validate_cast(tn_op *op, tn_error *err)
{
    tn_status status = tni_elementwise_check_shape(op, err);
    return status ? status : tni_elementwise_finish(op, err);
}

tn_status tni_cast_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_cast_args *args = given;
    const tni_op_class *class = &tni_cast_class;
    tn_status status =
        tni_elementwise_args(class->where, args, TN_UP_TO(tn_cast_args, workspace_bytes), err);
    if (status)
        return status;
    const tn_tensor *const tensors[] = {args->in, args->out};
    status = tni_problem_init(out, class, tensors, err);
    *TN_PARAMS_MUTABLE(&out->op, elementwise) = (tn_elementwise_op){0};
    return status ? status : tni_op_validate(&out->op, err);
}

static const tni_elementwise elementwise = {.out_key = "to", .needs_out = true};

const tni_op_class tni_cast_class = {
    .kind = TN_OP_CAST,
    .word = "cast",
    .fields = "shape to si so inplace align",
    .where = "tn_cast",
    .args = {TNI_ARGS_FORM(cast, stream),
             .tensors = {offsetof(tn_cast_args, in), offsetof(tn_cast_args, out)}},
    .elementwise = &elementwise,
    .check = &tni_cast_check,
    .make = tni_cast_make,
    .operands = tni_elementwise_in_out,
    .may_be_in_place = true,
    .validate = validate_cast,
    .cost = tni_elementwise_cost_simple,
    TNI_ELEMENTWISE_CLASS};

tn_status tn_cast(const tn_context *context, const tn_cast_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_cast_class, args, err);
}

tn_status tn_cast_explain(const tn_context *context, const tn_cast_args *args, tn_decision **out,
                          tn_error *err)
{
    return tni_call_explain(context, &tni_cast_class, args, out, err);
}

tn_status tn_cast_prepare(const tn_context *context, const tn_cast_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_cast_class, args, err);
}
