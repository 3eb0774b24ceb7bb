/* Masks of bool, which cuDNN's attention does not take: a graph of its own makes one that is added of it, 0 where a
 * key is seen and -infinity where it is hidden. */
#ifndef CUDA_CUDNN_BIAS_H
#define CUDA_CUDNN_BIAS_H

#include "graph.h"

/* How many elements it has, broadcast ones once; 0 for an op without a mask of bool. */
int64_t dnn_bias_elements(const tn_op *op);

/* Adds what makes it. */
void dnn_add_bias(dnn_graph *graph, const tn_op *op);

/* It itself, for scores to be added to. */
dnn_desc dnn_bias(dnn_graph *graph, const tn_op *op);

/* What a mask must be for that. */
tn_status dnn_bias_admit(const tn_op *op, tn_refusal *why);

#endif
