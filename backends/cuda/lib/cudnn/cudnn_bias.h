/* Preparation of masks for attention. cuDNN does not accept boolean masks: a separate graph makes an additive mask,
 * 0 where a key is visible and -infinity where it is hidden. And if a mask hides all keys from a query, its scores
 * and LSE are -infinity, and their difference is NaN: the backward pass uses the lowest finite number for such an
 * LSE. */
#ifndef CUDA_CUDNN_BIAS_H
#define CUDA_CUDNN_BIAS_H

#include "cudnn_graph.h"

/* Returns the number of elements of the mask, counting broadcast ones once; 0 if the op has no boolean mask. */
int64_t dnn_bias_elements(const tn_op *op);

/* Adds the operations that make the additive mask. */
void dnn_add_bias(dnn_graph *graph, const tn_op *op);

/* Returns the tensor of the additive mask, to be added to scores. */
dnn_desc dnn_bias(dnn_graph *graph, const tn_op *op);

/* Whether the backward pass needs a clamped copy of LSE, and the operations that make it. */
bool dnn_needs_least(const tn_op *op);
void dnn_add_least(dnn_graph *graph, const tn_op *op);

/* Checks what these operations require of a mask and of the number of rows. */
tn_status dnn_bias_admit(const tn_op *op, tn_refusal *why);

#endif
