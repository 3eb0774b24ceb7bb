/* attention-backward: the backward pass of attention. */
#include "dispatch/call.h"
#include "op/attention/attention.h"
#include "op/elementwise.h"

static const char *const operands[] = {
    "q",     "k",        "v",        "out",     "lse",   "mask_tensor",
    "sinks", "starts_q", "starts_k", "lengths", "pages", "seed_tensor",
    "dout",  "dq",       "dk",       "dv",      NULL};

/* Code for both passes indexes the operands of either with TN_ATTENTION_.... */
TN_STATIC_ASSERT((int)TN_ATTENTION_BACKWARD_MASK == (int)TN_ATTENTION_MASK &&
                     (int)TN_ATTENTION_BACKWARD_SEED == (int)TN_ATTENTION_SEED &&
                     (int)TN_ATTENTION_BACKWARD_DOUT == (int)TN_ATTENTION_OPERANDS,
                 "the operands of both passes have the same indices");

tn_status tni_attention_backward_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_backward_args *args = given;
    const tni_op_class *class = &tni_attention_backward_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (status)
        return status;
    const tni_attention_numbers numbers = TNI_ATTENTION_NUMBERS(args);
    const tn_tensor *const tensors[TN_ATTENTION_BACKWARD_OPERANDS] = {
        [TN_ATTENTION_Q] = args->q,
        [TN_ATTENTION_K] = args->k,
        [TN_ATTENTION_V] = args->v,
        [TN_ATTENTION_OUT] = args->out,
        [TN_ATTENTION_LSE] = args->lse,
        [TN_ATTENTION_MASK] = args->mask_tensor,
        [TN_ATTENTION_SEED] =
            TN_HAS(args, tn_attention_backward_args, seed_tensor) ? args->seed_tensor : NULL,
        [TN_ATTENTION_BACKWARD_DOUT] = args->dout,
        [TN_ATTENTION_BACKWARD_DQ] = args->dq,
        [TN_ATTENTION_BACKWARD_DK] = args->dk,
        [TN_ATTENTION_BACKWARD_DV] = args->dv};
    status = tni_problem_init(out, class, tensors, err);
    if (!status)
        status = tni_attention_read_numbers(class, &numbers, TN_PARAMS_MUTABLE(&out->op, attention),
                                            err);
    return status ? status
                  : tni_attention_finish(&out->op, args->layout, args->set & TN_ATTENTION_SET_SCALE,
                                         err);
}

#define AT(field) offsetof(tn_attention_backward_args, field)

const tni_op_class tni_attention_backward_class = {
    .kind = TN_OP_ATTENTION_BACKWARD,
    .replaces = tni_attention_replaces,
    .word = "attention-backward",
    .fields = "b h hk l lq lk d dv layout mask mdtype out scale softcap dropout seed offset shift "
              "sq sk sv so slse smask sdo sdq sdk sdv backend align",
    .where = "tn_attention_backward",
    .args = {TNI_ARGS_FORM(attention_backward, scale),
             .tensors = {[TN_ATTENTION_Q] = AT(q),
                         [TN_ATTENTION_K] = AT(k),
                         [TN_ATTENTION_V] = AT(v),
                         [TN_ATTENTION_OUT] = AT(out),
                         [TN_ATTENTION_LSE] = AT(lse),
                         [TN_ATTENTION_MASK] = AT(mask_tensor),
                         [TN_ATTENTION_SEED] = AT(seed_tensor),
                         [TN_ATTENTION_BACKWARD_DOUT] = AT(dout),
                         [TN_ATTENTION_BACKWARD_DQ] = AT(dq),
                         [TN_ATTENTION_BACKWARD_DK] = AT(dk),
                         [TN_ATTENTION_BACKWARD_DV] = AT(dv)}},
    .check = &tni_attention_backward_check,
    .make = tni_attention_backward_make,
    .operands = operands,
    .optional = 1U << TN_ATTENTION_MASK | 1U << TN_ATTENTION_SINKS | 1U << TN_ATTENTION_STARTS_Q |
                1U << TN_ATTENTION_STARTS_K | 1U << TN_ATTENTION_LENGTHS |
                1U << TN_ATTENTION_PAGES | 1U << TN_ATTENTION_SEED,
    .outputs = 1U << TN_ATTENTION_BACKWARD_DQ | 1U << TN_ATTENTION_BACKWARD_DK |
               1U << TN_ATTENTION_BACKWARD_DV,
    .output = TN_ATTENTION_BACKWARD_DQ,
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
