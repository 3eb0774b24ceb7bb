/* The graph of cuDNN operations for attention, in the pattern that its fused engines recognise: product, scale,
 * cap, mask, padding, bounds, softmax with its statistics, dropout, product; and the graph of its backward pass. */
#ifndef CUDA_CUDNN_SDPA_H
#define CUDA_CUDNN_SDPA_H

#include "cudnn_graph.h"

/* Adds the forward pass; the op must have been admitted. */
void dnn_add_attention(dnn_graph *graph, const tn_op *op);

/* Adds the backward pass. If `together`, gradients of queries are summed in place, sequentially, and are the same
 * in every run; else as partial sums in separate memory. */
void dnn_add_gradients(dnn_graph *graph, const tn_op *op, bool together);

/* State shared by both. */
typedef struct dnn_sdpa {
    dnn_graph *graph;
    const tn_op *op;
    dnn_shape shape;
    dnn_layout scores; /* [batch, heads, queries, keys] of f32 */
    dnn_layout rows;   /* the same with one number per query */
    dnn_desc queries;  /* of each sequence, if they have individual lengths; else NULL */
    dnn_desc keys;
    dnn_desc score; /* the current scores */
    dnn_desc kept;  /* with dropout: the mask of kept weights, and their factor `gain`; else NULL */
    dnn_desc gain;
} dnn_sdpa;

void dnn_sdpa_begin(dnn_graph *graph, const tn_op *op, dnn_sdpa *out);

/* An operand, as dnn_layout_of, also of packed sequences. */
dnn_desc dnn_operand(const dnn_sdpa *s, int32_t operand, bool turned);

/* mode(x, b, t) on tensors of the scores' shape, computed in `type`, which is also the result's type. */
dnn_desc dnn_each_score(const dnn_sdpa *s, int32_t mode, int32_t type, dnn_desc x, dnn_desc b,
                        dnn_desc t);

/* y = mode(x, b), computed in f32. */
dnn_desc dnn_each_to(const dnn_sdpa *s, int32_t mode, dnn_desc y, dnn_desc x, dnn_desc b);

/* Adds the scores of Q and K, with scale, cap and mask; then the bounds, which hide keys by their position. */
void dnn_add_scores(dnn_sdpa *s, dnn_desc q, dnn_desc k);
void dnn_add_bounds(dnn_sdpa *s);

#endif
