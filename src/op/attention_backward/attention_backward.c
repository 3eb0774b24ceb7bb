/* attention-backward: the backward pass of attention. */
#include "dispatch/call.h"
#include "op/attention/attention.h"
#include "op/elementwise.h"

static const char *const operands[] = {"q",    "k",  "v",  "out", "lse", "mask_tensor",
                                       "dout", "dq", "dk", "dv",  NULL};

tn_status tni_attention_backward_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_backward_args *args = given;
    const tni_op_class *class = &tni_attention_backward_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (status)
        return status;
    const tni_attention_numbers numbers = TNI_ATTENTION_NUMBERS(args);
    const tn_tensor *const tensors[] = {args->q,   args->k,           args->v,    args->out,
                                        args->lse, args->mask_tensor, args->dout, args->dq,
                                        args->dk,  args->dv};
    status = tni_problem_init(out, class, tensors, err);
    if (!status)
        status = tni_attention_read_numbers(class, &numbers, &out->op.as.attention, err);
    return status ? status
                  : tni_attention_finish(&out->op, args->layout, args->set & TN_ATTENTION_SET_SCALE,
                                         err);
}

#define AT(field) offsetof(tn_attention_backward_args, field)

const tni_op_class tni_attention_backward_class = {
    .kind = TN_OP_ATTENTION_BACKWARD,
    .word = "attention-backward",
    .where = "tn_attention_backward",
    .args = {TNI_ARGS_FORM(attention_backward, scale),
             .tensors = {AT(q), AT(k), AT(v), AT(out), AT(lse), AT(mask_tensor), AT(dout), AT(dq),
                         AT(dk), AT(dv)}},
    .check = &tni_attention_backward_check,
    .make = tni_attention_backward_make,
    .operands = operands,
    .optional = 1U << TN_ATTENTION_MASK,
    .outputs = 1U << TN_ATTENTION_DQ | 1U << TN_ATTENTION_DK | 1U << TN_ATTENTION_DV,
    .output = TN_ATTENTION_DQ,
    TNI_ATTENTION_CLASS};

tn_status tn_attention_backward(const tn_context *context, const tn_attention_backward_args *args,
                                tn_error *err)
{
    return tni_call_run(context, &tni_attention_backward_class, args, err);
}

tn_status tn_attention_backward_explain(const tn_context *context,
                                        const tn_attention_backward_args *args, tn_decision **out,
                                        tn_error *err)
{
    return tni_call_explain(context, &tni_attention_backward_class, args, out, err);
}

tn_status tn_attention_backward_prepare(const tn_context *context,
                                        const tn_attention_backward_args *args, tn_error *err)
{
    return tni_call_prepare(context, &tni_attention_backward_class, args, err);
}
