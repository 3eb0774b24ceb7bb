/* What masks need before attention. One of bool is not taken by cuDNN: a graph of its own makes one that is added of
 * it, 0 where a key is seen and -infinity where it is hidden. And a query that a mask hides from all keys has scores
 * and an LSE of -infinity, whose difference is no number: gradients have the least number for such an LSE. */
#ifndef CUDA_CUDNN_BIAS_H
#define CUDA_CUDNN_BIAS_H

#include "graph.h"

/* How many elements it has, broadcast ones once; 0 for an op without a mask of bool. */
int64_t dnn_bias_elements(const tn_op *op);

/* Adds what makes it. */
void dnn_add_bias(dnn_graph *graph, const tn_op *op);

/* It itself, for scores to be added to. */
dnn_desc dnn_bias(dnn_graph *graph, const tn_op *op);

/* Whether gradients need an LSE of their own, and what makes it. */
bool dnn_needs_least(const tn_op *op);
void dnn_add_least(dnn_graph *graph, const tn_op *op);

/* What a mask must be for that. */
tn_status dnn_bias_admit(const tn_op *op, tn_refusal *why);

#endif
