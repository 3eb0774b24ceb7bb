#include "cudnn_packed.h"

#include "../../kernels/layout.h"
#include "tenon/module/op/attention.h"

bool dnn_is_packed(const tn_op *op, int32_t operand, int32_t *out_starts)
{
    const bool of_keys = operand == TN_ATTENTION_K || operand == TN_ATTENTION_V;
    const int32_t starts = of_keys ? TN_ATTENTION_STARTS_K : TN_ATTENTION_STARTS_Q;
    if (op->kind != TN_OP_ATTENTION || operand > TN_ATTENTION_LSE || !op->operand[starts].dtype)
        return false;
    *out_starts = starts;
    return true;
}

/* Returns the elements from one row of an operand to the next. */
static int64_t row_of(const tn_op *op, int32_t operand)
{
    return op->operand[operand].stride[DNN_LENGTH];
}

static int32_t find_table(const dnn_tables *in, int32_t starts, int64_t row)
{
    int32_t i = 0;
    while (i < in->count && (in->table[i].starts != starts || in->table[i].row != row))
        i++;
    return i;
}

/* Adds a table unless it exists already: several operands can share one. */
static void add_table(dnn_tables *to, int32_t starts, int64_t row)
{
    const int32_t at = find_table(to, starts, row);
    if (at == to->count)
        to->table[to->count++] = (dnn_table){starts, row};
}

void dnn_tables_of(const tn_op *op, dnn_tables *out)
{
    int32_t starts;
    *out = (dnn_tables){0};
    for (int32_t i = TN_ATTENTION_Q; i <= TN_ATTENTION_OUT; i++) {
        if (!dnn_is_packed(op, i, &starts))
            continue;
        if (starts == TN_ATTENTION_STARTS_Q || !op->operand[TN_ATTENTION_LENGTHS].dtype)
            add_table(out, starts, 0);
        add_table(out, starts, row_of(op, i));
    }
}

/* A table of `count` i32 entries. */
static dnn_desc add_entries(dnn_graph *graph, int64_t count, int32_t from)
{
    const dnn_layout entries = {.type = DNN_I32,
                                .alignment = sizeof(int32_t),
                                .shape = {count, 1, 1, 1},
                                .stride = {1, 1, 1, 1}};
    return dnn_tensor(graph, &entries, from);
}

dnn_desc dnn_tensor_of_table(dnn_graph *graph, const tn_op *op, int32_t starts, int64_t row)
{
    const int64_t batch = TN_PARAMS(op, attention)->batch;
    dnn_tables tables;
    dnn_tables_of(op, &tables);
    return add_entries(graph, row ? batch + 1 : batch,
                       DNN_FROM_TABLES - find_table(&tables, starts, row));
}

dnn_desc dnn_places_of(dnn_graph *graph, const tn_op *op, int32_t operand)
{
    int32_t starts;
    if (!dnn_is_packed(op, operand, &starts))
        return NULL;
    if (operand == TN_ATTENTION_LSE) /* its rows are single elements */
        return add_entries(graph, TN_PARAMS(op, attention)->batch + 1, starts);
    return dnn_tensor_of_table(graph, op, starts, row_of(op, operand));
}

void dnn_add_table(dnn_graph *graph, const tn_op *op, int32_t index)
{
    dnn_tables tables;
    dnn_tables_of(op, &tables);
    const dnn_table *of = &tables.table[index];
    const int64_t count = TN_PARAMS(op, attention)->batch + (of->row ? 1 : 0);
    const dnn_layout line = {.type = DNN_I32,
                             .alignment = sizeof(int32_t),
                             .shape = {1, count, 1, 1},
                             .stride = {count, 1, count, count}};
    dnn_each each = {.type = DNN_F32, .y = dnn_tensor(graph, &line, DNN_FROM_TABLES - index)};
    if (of->row) {
        each.mode = DNN_MUL;
        each.x = dnn_tensor(graph, &line, of->starts);
        each.b = dnn_number(graph, DNN_FROM_WHOLE, DNN_I32, (double)of->row);
    } else {
        each.mode = DNN_SUB;
        each.x = dnn_tensor(graph, &line, DNN_FROM_SECOND - of->starts);
        each.b = dnn_tensor(graph, &line, of->starts);
    }
    dnn_add_each(graph, &each);
}

static tn_status admit_operand(const tn_op *op, int32_t operand, int32_t starts, tn_refusal *why)
{
    enum { WHOLE_MOST = 1 << 24 };
    const int64_t rows = op->operand[operand].shape[DNN_LENGTH], row = row_of(op, operand);
    int64_t odd = row;
    while (odd > 0 && odd % 2 == 0)
        odd /= 2;
    if (op->operand[starts].stride[0] != 1)
        return cuda_refuse(why, TN_REFUSE_STRIDE, "starts.stride", 1, op->operand[starts].stride[0],
                           "the starts of sequences must be contiguous");
    if (row < 1 || rows > INT32_MAX / row)
        return cuda_refuse(why, TN_REFUSE_SHAPE, "packed rows", row < 1 ? 0 : INT32_MAX / row, rows,
                           "the offset of a sequence, in elements, must fit in 32 bits");
    return rows <= WHOLE_MOST / odd
               ? TN_OK
               : cuda_refuse(why, TN_REFUSE_SHAPE, "packed rows", WHOLE_MOST / odd, rows,
                             "the offset of a sequence is computed in f32");
}

tn_status dnn_packed_admit(const tn_op *op, tn_refusal *why)
{
    tn_status status = TN_OK;
    int32_t starts;
    for (int32_t i = TN_ATTENTION_Q; i <= TN_ATTENTION_OUT && !status; i++) {
        if (dnn_is_packed(op, i, &starts))
            status = admit_operand(op, i, starts, why);
    }
    return status;
}
