/* Packed sequences, as cuDNN is told of them: tables of how many rows each has, and of which element of an operand
 * it begins with. They are made on the device, by cuDNN, from where sequences start. */
#ifndef CUDA_CUDNN_PACKED_H
#define CUDA_CUDNN_PACKED_H

#include "graph.h"

enum { DNN_TABLES_MOST = 6 };

typedef struct dnn_table {
    int32_t starts; /* the operand that it is made from */
    int64_t row;    /* elements from one row to the next; 0: it is of how many rows there are */
} dnn_table;

typedef struct dnn_tables {
    int32_t count; /* 0: nothing is packed */
    dnn_table table[DNN_TABLES_MOST];
} dnn_tables;

void dnn_tables_of(const tn_op *op, dnn_tables *out);

/* Whether an operand's sequences lie one behind the other; where they start is in the operand *out_starts. */
bool dnn_is_packed(const tn_op *op, int32_t operand, int32_t *out_starts);

/* A tensor of one of the tables in the run's memory. */
dnn_desc dnn_tensor_of_table(dnn_graph *graph, const tn_op *op, int32_t starts, int64_t row);

/* Where the sequences of an operand start, in elements of it: a tensor for dnn_tensor_at. */
dnn_desc dnn_places_of(dnn_graph *graph, const tn_op *op, int32_t operand);

/* Adds what makes the table of that index. */
void dnn_add_table(dnn_graph *graph, const tn_op *op, int32_t index);

/* What the tables are counted in, f32, has whole numbers up to a bound, and their elements are i32. */
tn_status dnn_packed_admit(const tn_op *op, tn_refusal *why);

#endif
