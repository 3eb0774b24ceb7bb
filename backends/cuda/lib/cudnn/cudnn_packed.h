/* Packed sequences, as cuDNN expects them: tables of the number of rows of each sequence, and of the first element
 * of each in an operand. cuDNN computes them on the device from the operands that contain the starts of
 * sequences. */
#ifndef CUDA_CUDNN_PACKED_H
#define CUDA_CUDNN_PACKED_H

#include "cudnn_graph.h"

enum { DNN_TABLES_MOST = 6 };

typedef struct dnn_table {
    int32_t starts; /* the operand that it is computed from */
    int64_t row;    /* elements from one row to the next; 0: a table of row counts */
} dnn_table;

typedef struct dnn_tables {
    int32_t count; /* 0: nothing is packed */
    dnn_table table[DNN_TABLES_MOST];
} dnn_tables;

void dnn_tables_of(const tn_op *op, dnn_tables *out);

/* Returns whether an operand's sequences are packed one after the other; *out_starts is the operand with
 * their starts. */
bool dnn_is_packed(const tn_op *op, int32_t operand, int32_t *out_starts);

/* Returns the tensor of one of the tables in the run's workspace. */
dnn_desc dnn_tensor_of_table(dnn_graph *graph, const tn_op *op, int32_t starts, int64_t row);

/* Returns the starts of an operand's sequences, in elements: a tensor for dnn_tensor_at. */
dnn_desc dnn_places_of(dnn_graph *graph, const tn_op *op, int32_t operand);

/* Adds the operations that compute the table of that index. */
void dnn_add_table(dnn_graph *graph, const tn_op *op, int32_t index);

/* Checks limits: the tables are computed in f32, which is exact for integers only up to a bound, and
 * stored as i32. */
tn_status dnn_packed_admit(const tn_op *op, tn_refusal *why);

#endif
