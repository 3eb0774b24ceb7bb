/* Builds graphs of cuDNN operations: descriptors of tensors and operations. The first failure is kept, and
 * all later calls do nothing. */
#ifndef CUDA_CUDNN_GRAPH_H
#define CUDA_CUDNN_GRAPH_H

#include "cudnn_shape.h"
#include "dnn.h"

/* The source of a tensor's data in a run: an operand of the op, or one of these. */
enum {
    DNN_FROM_SCALE = -1, /* the op's scale, as f32    */
    DNN_FROM_CAP = -2,   /* its softcap, as f32       */
    DNN_FROM_FLOAT = -3, /* the slot's number, as f32 */
    DNN_FROM_WHOLE = -4, /* the slot's number, as i32 */

    /* Parts of the run's workspace: */
    DNN_FROM_TABLE = -5, /* the number of queries, one i32 per sequence, filled in by the run */
    DNN_FROM_SUMS = -6,  /* f32 for each row of scores */
    DNN_FROM_PARTS = -7, /* f32 for each element of Q  */
    DNN_FROM_BIAS = -8,  /* the additive mask made from a boolean one */
    DNN_FROM_LEAST = -9, /* LSE, with the lowest finite number instead of -infinity */
    DNN_FROM_KEPT = -10, /* 1 for each weight that dropout keeps, 0 for the others */

    DNN_FROM_GAIN = -11, /* 1 / (1 - dropout), the factor for kept weights, as f32 */

    /* Bases from which a number is subtracted: */
    DNN_FROM_SECOND = -32, /* the op's operand of that number, from its second i32 on */
    DNN_FROM_TABLES = -64  /* the table of packed sequences with that index */
};

typedef struct dnn_slot {
    int64_t id; /* of the tensor */
    int32_t from;
    union {
        float real;
        int32_t whole;
    } number;
} dnn_slot;

enum { DNN_SLOTS_MOST = 24, DNN_OPS_MOST = 64, DNN_DESCS_MOST = 256 };

typedef struct dnn_graph {
    const cuda_dnn *dnn;
    dnn_status code;  /* the first failure */
    const char *call; /* what failed */
    int64_t next_id;
    int32_t descs, ops, slots;
    dnn_desc desc[DNN_DESCS_MOST]; /* all that were created, for destruction */
    dnn_desc op[DNN_OPS_MOST];
    dnn_slot slot[DNN_SLOTS_MOST];
} dnn_graph;

typedef struct dnn_layout {
    int32_t type;      /* DNN_F32 */
    int32_t alignment; /* in bytes; 0: 16 */
    int64_t shape[DNN_RANK], stride[DNN_RANK];
} dnn_layout;

int32_t dnn_type_of(tn_dtype dtype);

/* An operand in memory; broadcast dimensions have size 1. If `turned`, the last two dimensions are swapped. */
void dnn_layout_of(const tn_op *op, int32_t operand, bool turned, dnn_layout *out);

/* Swaps the last two dimensions. */
void dnn_layout_turn(dnn_layout *io);

void dnn_graph_begin(const cuda_dnn *dnn, dnn_graph *out);
void dnn_graph_end(dnn_graph *graph); /* destroys every descriptor */

/* Creates a descriptor, which dnn_graph_end destroys; NULL after a failure. */
dnn_desc dnn_make(dnn_graph *graph, dnn_desc_type type);
void dnn_put(dnn_graph *graph, dnn_desc desc, dnn_attribute attribute, dnn_type type, int64_t count,
             const void *of);
void dnn_put_desc(dnn_graph *graph, dnn_desc desc, dnn_attribute attribute, dnn_desc of);
void dnn_put_word(dnn_graph *graph, dnn_desc desc, dnn_attribute attribute, dnn_type type,
                  int32_t word);
void dnn_finish(dnn_graph *graph, dnn_desc desc, const char *what);

/* dnn_tensor is a tensor in memory with its source, dnn_between (below) a virtual one that is never in memory,
 * dnn_number a number that is passed with the run. */
dnn_desc dnn_tensor(dnn_graph *graph, const dnn_layout *layout, int32_t from);

/* A tensor in memory whose batches begin at the offsets in `places`, a tensor of i32, in elements; NULL: at the
 * strides. */
dnn_desc dnn_tensor_at(dnn_graph *graph, const dnn_layout *layout, int32_t from, dnn_desc places);
dnn_desc dnn_between(dnn_graph *graph, const dnn_layout *layout);
dnn_desc dnn_number(dnn_graph *graph, int32_t from, int32_t type, double number);

/* C = A B. With lengths, the tensors m, n and k have the sizes of each matrix. */
typedef struct dnn_matmul {
    dnn_desc a, b, c, m, n, k;
    bool padded; /* elements beyond these sizes count as 0 */
} dnn_matmul;
void dnn_add_matmul(dnn_graph *graph, const dnn_matmul *of);

/* y = mode(x, b, t), computed in `type`; b and t may be NULL. `axis` is for DNN_INDEX. */
typedef struct dnn_each {
    int32_t mode, type, axis;
    dnn_desc y, x, b, t;
} dnn_each;
void dnn_add_each(dnn_graph *graph, const dnn_each *of);

/* y = x reduced in f32 over the dimensions in which y is smaller. */
void dnn_add_reduction(dnn_graph *graph, int32_t mode, dnn_desc x, dnn_desc y);

/* y is a view of x with another shape and strides. */
void dnn_add_reshape(dnn_graph *graph, dnn_desc x, dnn_desc y);

/* y is the contiguous form of the pages in `from`; `table` lists the pages of each sequence. */
typedef struct dnn_paged {
    dnn_desc y, from, lengths, table;
} dnn_paged;
void dnn_add_paged(dnn_graph *graph, const dnn_paged *of);

/* Makes the graph of all operations so far, for the handle's device; `handle` is NULL if a device is
 * described elsewhere. */
dnn_desc dnn_graph_make(dnn_graph *graph, dnn_handle handle);

#endif
