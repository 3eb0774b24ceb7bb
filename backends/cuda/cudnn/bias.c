#include "bias.h"

#include "../kernels/layout.h"
#include "sdpa.h"

int64_t dnn_bias_elements(const tn_op *op)
{
    const tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    int64_t count = 1;
    if (mask->dtype != TN_BOOL)
        return 0;
    for (int32_t d = 0; d < DNN_RANK; d++) { /* its bytes lie in memory, and so can be counted */
        if (mask->stride[d] != 0)
            count *= mask->shape[d];
    }
    return count;
}

void dnn_add_bias(dnn_graph *graph, const tn_op *op)
{
    const int64_t count = dnn_bias_elements(op);
    dnn_layout line = {
        .type = DNN_U8, .shape = {1, count, 1, 1}, .stride = {count, 1, count, count}};
    dnn_each each = {.mode = DNN_MIN, .type = DNN_F32};
    each.x = dnn_tensor(graph, &line, TN_ATTENTION_MASK);
    each.b = dnn_number(graph, DNN_FROM_FLOAT, DNN_F32, 1);
    line.type = DNN_F32;
    each.y = dnn_between(graph, &line);
    dnn_add_each(graph, &each);
    line.type = dnn_type_of(op->operand[TN_ATTENTION_Q].dtype);
    const dnn_each logarithm = {.mode = DNN_LOG,
                                .type = DNN_F32,
                                .x = each.y,
                                .y = dnn_tensor(graph, &line, DNN_FROM_BIAS)};
    dnn_add_each(graph, &logarithm);
}

dnn_desc dnn_bias(dnn_graph *graph, const tn_op *op)
{
    dnn_layout layout;
    dnn_layout_of(op, TN_ATTENTION_MASK, false, &layout);
    layout.type = dnn_type_of(op->operand[TN_ATTENTION_Q].dtype);
    return dnn_tensor(graph, &layout, DNN_FROM_BIAS);
}

tn_status dnn_bias_admit(const tn_op *op, tn_refusal *why)
{
    const tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    int64_t together = 1;
    if (mask->dtype != TN_BOOL)
        return TN_OK;
    for (int32_t d = DNN_RANK - 1; d >= 0; d--) {
        if (mask->shape[d] == 1 || mask->stride[d] == 0)
            continue;
        if (mask->stride[d] != together)
            return cuda_refuse(why, TN_REFUSE_STRIDE, "mask.stride", together, mask->stride[d],
                               "a mask of bool lies together: one that is added is made of it");
        together *= mask->shape[d];
    }
    return together <= INT32_MAX ? TN_OK
                                 : cuda_refuse(why, TN_REFUSE_SHAPE, "mask", INT32_MAX, together,
                                               "a mask of bool has at most so many elements");
}
