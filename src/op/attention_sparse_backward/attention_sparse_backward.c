/* attention-sparse-backward: the backward pass of attention-sparse. */
#include "tenon/attention_sparse_backward.h"

#include "dispatch/call.h"
#include "op/attention_sparse/attention_sparse.h"
#include "op/elementwise.h"

static const char *const operands[] = {
    "q",      "k",      "v",           "out",        "lse",         "block_mask",
    "starts", "blocks", "block_sizes", "reserved_9", "reserved_10", "reserved_11",
    "dout",   "dq",     "dk",          "dv",         NULL};

/* Code for both passes, and for attention-backward, indexes the operands of any of them. */
TN_STATIC_ASSERT((int)TN_ATTENTION_SPARSE_BACKWARD_SIZES == (int)TN_ATTENTION_SPARSE_SIZES &&
                     (int)TN_ATTENTION_SPARSE_OPERANDS <= (int)TN_ATTENTION_SPARSE_BACKWARD_DOUT &&
                     (int)TN_ATTENTION_SPARSE_BACKWARD_DOUT == (int)TN_ATTENTION_BACKWARD_DOUT &&
                     (int)TN_ATTENTION_SPARSE_BACKWARD_DV == (int)TN_ATTENTION_BACKWARD_DV,
                 "the operands of both passes and of attention-backward have the same indices");

tn_status tni_attention_sparse_backward_make(const void *given, tni_problem *out, tn_error *err)
{
    const tn_attention_sparse_backward_args *args = given;
    const tni_op_class *class = &tni_attention_sparse_backward_class;
    tn_status status = tni_elementwise_args(class->where, args, class->args.size, err);
    if (!status)
        status = tni_elementwise_reserved(class->where, "reserved", (uint32_t)args->reserved, err);
    if (status)
        return status;
    const tni_attention_numbers numbers = {.scale = args->scale,
                                           .left = args->window_left,
                                           .right = args->window_right,
                                           .mask = args->mask,
                                           .layout = args->layout,
                                           .set = args->set};
    const tn_tensor *const tensors[TN_ATTENTION_SPARSE_BACKWARD_OPERANDS] = {
        [TN_ATTENTION_SPARSE_Q] = args->q,
        [TN_ATTENTION_SPARSE_K] = args->k,
        [TN_ATTENTION_SPARSE_V] = args->v,
        [TN_ATTENTION_SPARSE_OUT] = args->out,
        [TN_ATTENTION_SPARSE_LSE] = args->lse,
        [TN_ATTENTION_SPARSE_MASK] = args->block_mask,
        [TN_ATTENTION_SPARSE_STARTS] = args->starts,
        [TN_ATTENTION_SPARSE_BLOCKS] = args->blocks,
        [TN_ATTENTION_SPARSE_SIZES] = args->block_sizes,
        [TN_ATTENTION_SPARSE_BACKWARD_DOUT] = args->dout,
        [TN_ATTENTION_SPARSE_BACKWARD_DQ] = args->dq,
        [TN_ATTENTION_SPARSE_BACKWARD_DK] = args->dk,
        [TN_ATTENTION_SPARSE_BACKWARD_DV] = args->dv};
    status = tni_problem_init(out, class, tensors, err);
    return status ? status
                  : tni_attention_sparse_finish(&out->op, &numbers, args->block_queries,
                                                args->block_keys, err);
}

#define AT(field) offsetof(tn_attention_sparse_backward_args, field)

const tni_op_class tni_attention_sparse_backward_class = {
    .kind = TN_OP_ATTENTION_SPARSE_BACKWARD,
    .word = "attention-sparse-backward",
    .fields =
        "b h hk l lq lk d dv bq bk layout mask entries sizes out scale sq sk sv so slse smask "
        "sstarts sblocks ssizes sdo sdq sdk sdv align",
    .where = "tn_attention_sparse_backward",
    .args = {TNI_ARGS_FORM(attention_sparse_backward, scale),
             .tensors = {[TN_ATTENTION_SPARSE_Q] = AT(q),
                         [TN_ATTENTION_SPARSE_K] = AT(k),
                         [TN_ATTENTION_SPARSE_V] = AT(v),
                         [TN_ATTENTION_SPARSE_OUT] = AT(out),
                         [TN_ATTENTION_SPARSE_LSE] = AT(lse),
                         [TN_ATTENTION_SPARSE_MASK] = AT(block_mask),
                         [TN_ATTENTION_SPARSE_STARTS] = AT(starts),
                         [TN_ATTENTION_SPARSE_BLOCKS] = AT(blocks),
                         [TN_ATTENTION_SPARSE_SIZES] = AT(block_sizes),
                         [TN_ATTENTION_SPARSE_BACKWARD_DOUT] = AT(dout),
                         [TN_ATTENTION_SPARSE_BACKWARD_DQ] = AT(dq),
                         [TN_ATTENTION_SPARSE_BACKWARD_DK] = AT(dk),
                         [TN_ATTENTION_SPARSE_BACKWARD_DV] = AT(dv)}},
    .check = &tni_attention_sparse_backward_check,
    .make = tni_attention_sparse_backward_make,
    .operands = operands,
    .optional =
        ((1U << TN_ATTENTION_SPARSE_BACKWARD_DOUT) - 1) & ~((1U << TN_ATTENTION_SPARSE_MASK) - 1),
    .outputs = 1U << TN_ATTENTION_SPARSE_BACKWARD_DQ | 1U << TN_ATTENTION_SPARSE_BACKWARD_DK |
               1U << TN_ATTENTION_SPARSE_BACKWARD_DV,
    .output = TN_ATTENTION_SPARSE_BACKWARD_DQ,
    TNI_ATTENTION_SPARSE_CLASS};

tn_status tn_attention_sparse_backward(const tn_context *context,
                                       const tn_attention_sparse_backward_args *args, tn_error *err)
{
    return tni_call_run(context, &tni_attention_sparse_backward_class, args, err);
}

tn_status tn_attention_sparse_backward_explain(const tn_context *context,
                                               const tn_attention_sparse_backward_args *args,
                                               tn_decision **out, tn_error *err)
{
    return tni_call_explain(context, &tni_attention_sparse_backward_class, args, out, err);
}

tn_status tn_attention_sparse_backward_prepare(const tn_context *context,
                                               const tn_attention_sparse_backward_args *args,
                                               tn_error *err)
{
    return tni_call_prepare(context, &tni_attention_sparse_backward_class, args, err);
}
