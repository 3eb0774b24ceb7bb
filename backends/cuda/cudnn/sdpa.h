/* The graph of cuDNN's operations that is attention, in the pattern that its fused engines know: product,
 * scale, cap, mask, padding, bounds, softmax with its statistics, dropout, product; and the graph of its gradients. */
#ifndef CUDA_CUDNN_SDPA_H
#define CUDA_CUDNN_SDPA_H

#include "graph.h"

/* Adds attention forward; the op was admitted. */
void dnn_add_attention(dnn_graph *graph, const tn_op *op);

/* Adds its gradients. `together`: those of queries are summed in their place, one behind the other, and so are the
 * same in every run; else in parts, in memory of their own. */
void dnn_add_gradients(dnn_graph *graph, const tn_op *op, bool together);

/* What both share. */
typedef struct dnn_sdpa {
    dnn_graph *graph;
    const tn_op *op;
    dnn_shape shape;
    dnn_layout scores; /* [batch, heads, queries, keys] of f32 */
    dnn_layout rows;   /* the same with one number for all keys */
    dnn_desc queries;  /* of each sequence, where they have lengths of keys; else NULL */
    dnn_desc keys;
    dnn_desc score; /* the scores as they are now */
    dnn_desc
        kept; /* with dropout: the mask of what is kept, and what that is multiplied by; else NULL */
    dnn_desc gain;
} dnn_sdpa;

void dnn_sdpa_begin(dnn_graph *graph, const tn_op *op, dnn_sdpa *out);
int32_t dnn_type_of(tn_dtype dtype);

/* An operand in memory; of a dimension that one element serves there is one element. `turned`: its last two
 * dimensions change places. */
void dnn_layout_of(const tn_op *op, int32_t operand, bool turned, dnn_layout *out);
dnn_desc dnn_operand(const dnn_sdpa *s, int32_t operand, bool turned);

/* mode(x, b, t) of numbers that are like scores, computed in `type`; what becomes of them is of that type. */
dnn_desc dnn_each_score(const dnn_sdpa *s, int32_t mode, int32_t type, dnn_desc x, dnn_desc b,
                        dnn_desc t);

/* y = mode(x, b), computed in f32. */
dnn_desc dnn_each_to(const dnn_sdpa *s, int32_t mode, dnn_desc y, dnn_desc x, dnn_desc b);

/* Scores from Q and K, with scale, cap and mask; then what of them is hidden by the places of keys. */
void dnn_add_scores(dnn_sdpa *s, dnn_desc q, dnn_desc k);
void dnn_add_bounds(dnn_sdpa *s);

#endif
