#include "cudnn_bias.h"

#include "../../kernels/layout.h"
#include "sdpa.h"
#include "tenon/module/op/attention_backward.h"

#include <float.h>

int64_t dnn_bias_elements(const tn_op *op)
{
    const tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    int64_t count = 1;
    if (mask->dtype != TN_BOOL)
        return 0;
    for (int32_t d = 0; d < DNN_RANK; d++) { /* the mask is in memory, so this cannot overflow */
        if (mask->stride[d] != 0)
            count *= mask->shape[d];
    }
    return count;
}

/* Launch limits of cuDNN's kernels: 9.19 could not launch 4194304 = 65536 * 64 elements in one line. */
enum { LINE_MOST = 65535 * 32, LINES_MOST = 65535 };

/* Arranges contiguous elements in one line if that can be launched, else in lines of whole rows. Returns false if
 * neither is possible. */
static bool arrange_lines(int64_t count, int64_t row, int64_t *out_line, int64_t *out_lines)
{
    int64_t line = count <= LINE_MOST ? count : row, lines = count <= LINE_MOST ? 1 : count / row;
    while (lines > LINES_MOST && lines % 2 == 0 && line <= LINE_MOST / 2) {
        line *= 2;
        lines /= 2;
    }
    *out_line = line;
    *out_lines = lines;
    return line <= LINE_MOST && lines <= LINES_MOST;
}

/* A layout of contiguous elements of a dtype, regardless of their dimensions. */
static dnn_layout line_of(int32_t type, int64_t count, int64_t row)
{
    int64_t line, lines;
    (void)arrange_lines(count, row, &line, &lines);
    return (dnn_layout){
        .type = type, .shape = {1, line, lines, 1}, .stride = {count, 1, line, line}};
}

void dnn_add_bias(dnn_graph *graph, const tn_op *op)
{
    const tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    const int64_t count = dnn_bias_elements(op);
    const int64_t row = mask->shape[DNN_RANK - 1];
    const dnn_layout bytes = line_of(DNN_U8, count, row), numbers = line_of(DNN_F32, count, row);
    const dnn_layout bias = line_of(dnn_type_of(op->operand[TN_ATTENTION_Q].dtype), count, row);
    const dnn_each each = {.mode = DNN_MIN,
                           .type = DNN_F32,
                           .x = dnn_tensor(graph, &bytes, TN_ATTENTION_MASK),
                           .b = dnn_number(graph, DNN_FROM_FLOAT, DNN_F32, 1),
                           .y = dnn_between(graph, &numbers)};
    dnn_add_each(graph, &each);
    const dnn_each logarithm = {.mode = DNN_LOG,
                                .type = DNN_F32,
                                .x = each.y,
                                .y = dnn_tensor(graph, &bias, DNN_FROM_BIAS)};
    dnn_add_each(graph, &logarithm);
}

bool dnn_needs_least(const tn_op *op)
{
    return op->kind == TN_OP_ATTENTION_BACKWARD && op->operand[TN_ATTENTION_MASK].dtype;
}

void dnn_add_least(dnn_graph *graph, const tn_op *op)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const dnn_layout line = line_of(DNN_F32, at->batch * at->heads * at->queries, at->queries);
    const dnn_each each = {.mode = DNN_MAX,
                           .type = DNN_F32,
                           .x = dnn_tensor(graph, &line, TN_ATTENTION_LSE),
                           .b = dnn_number(graph, DNN_FROM_FLOAT, DNN_F32, -(double)FLT_MAX),
                           .y = dnn_tensor(graph, &line, DNN_FROM_LEAST)};
    dnn_add_each(graph, &each);
}

dnn_desc dnn_bias(dnn_graph *graph, const tn_op *op)
{
    dnn_layout layout;
    dnn_layout_of(op, TN_ATTENTION_MASK, false, &layout);
    layout.type = dnn_type_of(op->operand[TN_ATTENTION_Q].dtype);
    return dnn_tensor(graph, &layout, DNN_FROM_BIAS);
}

/* Checks the number of rows for dnn_add_least, which clamps the LSE of each row. */
static tn_status admit_least(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = TN_PARAMS(op, attention);
    const int64_t rows = at->batch * at->heads * at->queries;
    int64_t line, lines;
    if (!dnn_needs_least(op) || rows == 0 || arrange_lines(rows, at->queries, &line, &lines))
        return TN_OK;
    return line > LINE_MOST ? cuda_refuse(why, TN_REFUSE_SHAPE, "queries", LINE_MOST, line,
                                          "too many queries for gradients with a mask")
                            : cuda_refuse(why, TN_REFUSE_SHAPE, "batch, heads", LINES_MOST, lines,
                                          "too many sequences and heads for gradients with a mask");
}

tn_status dnn_bias_admit(const tn_op *op, tn_refusal *why)
{
    const tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    int64_t together = 1, line, lines;
    tn_status status = admit_least(op, why);
    if (status || mask->dtype != TN_BOOL)
        return status;
    for (int32_t d = DNN_RANK - 1; d >= 0; d--) {
        if (mask->shape[d] == 1 || mask->stride[d] == 0)
            continue;
        if (mask->stride[d] != together)
            return cuda_refuse(
                why, TN_REFUSE_STRIDE, "mask.stride", together, mask->stride[d],
                "boolean masks must be contiguous: they are converted to additive ones");
        together *= mask->shape[d];
    }
    if (together > INT32_MAX)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "mask", INT32_MAX, together,
                           "a boolean mask has too many elements");
    if (together == 0 || arrange_lines(together, mask->shape[DNN_RANK - 1], &line, &lines))
        return TN_OK;
    return line > LINE_MOST ? cuda_refuse(why, TN_REFUSE_SHAPE, "keys", LINE_MOST, line,
                                          "a boolean mask has rows that are too long")
                            : cuda_refuse(why, TN_REFUSE_SHAPE, "mask", LINES_MOST, lines,
                                          "a boolean mask has too many rows");
}
