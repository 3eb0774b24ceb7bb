/* Makes the problem of a call, for attention and attention-backward. */
#include "attention.h"

#include <inttypes.h>

/* Whether a side of a window is not set: 0 or no bound. */
static bool is_idle(int64_t side)
{
    return side == 0 || side == -1;
}

tn_status tni_attention_read_numbers(const tni_op_class *class, const tni_attention_numbers *from,
                                     tn_attention_op *out, tn_error *err)
{
    *out = (tn_attention_op){.scale = from->scale,
                             .softcap = from->softcap,
                             .dropout = from->dropout,
                             .seed = from->seed,
                             .offset = from->offset,
                             .backend = from->backend};
    if (from->set & ~TN_ATTENTION_SET_SCALE)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                       "args->set has bits that this version does not know");
    if (from->backend < 0 || from->backend >= TN_BACKEND_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                       "backend: expected 0 (any) to %d, got %d", TN_BACKEND_COUNT - 1,
                       (int)from->backend);
    if (!tni_attention_see(out, from->mask, from->left, from->right))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                       "mask: expected 0 (none) to %d, got %d", TN_MASK_COUNT - 1, (int)from->mask);
    if (from->mask != TN_MASK_WINDOW && (!is_idle(from->left) || !is_idle(from->right)))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                       "%s: expected 0 or -1 for mask %d, got %" PRId64 "; use mask %d (window)",
                       is_idle(from->left) ? "window_right" : "window_left", (int)from->mask,
                       is_idle(from->left) ? from->right : from->left, TN_MASK_WINDOW);
    if (from->layout < 0 || from->layout >= TN_LAYOUT_COUNT)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, class->where,
                       "layout: expected 0 (bhld) or 1 (blhd), got %d", (int)from->layout);
    return TN_OK;
}

/* Adds a leading batch dimension of size 1. */
static void add_batch(tn_layout *layout)
{
    if (!layout->dtype || layout->rank >= TN_OP_RANK_MAX)
        return;
    memmove(layout->shape + 1, layout->shape, (size_t)layout->rank * sizeof layout->shape[0]);
    memmove(layout->stride + 1, layout->stride, (size_t)layout->rank * sizeof layout->stride[0]);
    layout->shape[0] = layout->stride[0] = 1;
    layout->rank++;
}

tn_status tni_attention_finish(tn_op *op, int32_t way, bool scaled, tn_error *err)
{
    for (int32_t i = 0; i < op->count; i++) {
        if (tni_attention_is_packed(op, i))
            add_batch(&op->operand[i]);
        if (i <= TN_ATTENTION_OUT || i >= TN_ATTENTION_BACKWARD_DOUT)
            tni_attention_turn(&op->operand[i], way);
    }
    const tn_layout *q = &op->operand[TN_ATTENTION_Q];
    if (TN_PARAMS(op, attention)->scale == 0 && !scaled && q->rank == 4)
        TN_PARAMS_MUTABLE(op, attention)->scale = tni_attention_scale(q->shape[3]);
    return tni_op_validate(op, err);
}
