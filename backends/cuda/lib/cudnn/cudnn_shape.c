#include "cudnn_shape.h"

#include "../../kernels/layout.h"
#include "tenon/module/op/attention.h"

/* All sequences have all keys: the two corners differ only by a constant. */
static void shape_whole(const tn_attention_op *at, dnn_shape *out)
{
    const bool bottom = at->corner == TN_CORNER_BOTTOM_RIGHT;
    const int64_t first = at->shift + (bottom ? at->keys - at->queries : 0); /* query 0's place */
    const int64_t last = first + at->queries - 1;
    out->right = at->right >= 0 && first + at->right < at->keys - 1;
    out->left = at->left >= 0 && last > at->left;
    out->bottom = out->right && bottom && first != at->shift;
    out->blind =
        (out->right && first + at->right < 0) || (out->left && last - at->left > at->keys - 1);
    out->right_by = at->right + (out->bottom ? at->shift : first);
    out->left_by = at->left + 1 - first;
}

/* The number of keys of each sequence is in memory when it runs, and may be 0. */
static void shape_lengths(const tn_attention_op *at, dnn_shape *out)
{
    const bool bottom = at->corner == TN_CORNER_BOTTOM_RIGHT;
    const int64_t reach = at->right + at->shift;
    const int64_t last = at->shift + (bottom ? at->keys : at->queries) - 1;
    out->right = at->right >= 0 && (bottom ? at->queries > 1 || reach < 0 : reach < at->keys - 1);
    out->left = at->left >= 0 && last > at->left;
    out->bottom = bottom && (out->right || out->left);
    out->blind = true;
    out->right_by = reach;
    out->left_by = at->left + 1 - at->shift;
}

bool dnn_has_lengths(const tn_op *op)
{
    return op->kind == TN_OP_ATTENTION &&
           (op->operand[TN_ATTENTION_LENGTHS].dtype != TN_DTYPE_NONE ||
            op->operand[TN_ATTENTION_STARTS_Q].dtype != TN_DTYPE_NONE);
}

static tn_status admit_numbers(const tn_attention_op *at, tn_refusal *why)
{
    const cuda_count numbers[] = {{"queries", at->queries},
                                  {"keys", at->keys},
                                  {"window.left", at->left},
                                  {"window.right", at->right},
                                  {"shift", at->shift < -INT64_MAX ? INT64_MAX
                                            : at->shift < 0        ? -at->shift
                                                                   : at->shift}};
    return cuda_admit_counts(numbers, sizeof numbers / sizeof numbers[0], INT32_MAX / 2,
                             "lengths and bounds of at most 1073741823 each", why);
}

tn_status dnn_shape_of(const tn_op *op, dnn_shape *out, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    *out = (dnn_shape){.lengths = dnn_has_lengths(op)};
    tn_status status = admit_numbers(at, why);
    if (status)
        return status;
    if (out->lengths)
        shape_lengths(at, out);
    else
        shape_whole(at, out);
    out->blind = out->blind || op->operand[TN_ATTENTION_MASK].dtype != TN_DTYPE_NONE;
    if ((out->right || out->left) && at->queries == 1)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "queries", 2, 1,
                           "a single query sees all keys: with bounds cuDNN's result may be wrong "
                           "where heads share keys (its release notes, 9.18.1)");
    if ((out->left || out->bottom) && !out->lengths && at->queries > at->keys)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "queries", at->keys, at->queries,
                           "a window, or bounds from the bottom right corner, have no more queries "
                           "than keys");
    return TN_OK;
}
