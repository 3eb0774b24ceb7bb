/* Attention as cuDNN is told of it: which bounds matter on the keys that a query sees, and where they are
 * counted from. */
#ifndef CUDA_CUDNN_SHAPE_H
#define CUDA_CUDNN_SHAPE_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

typedef struct dnn_shape {
    bool lengths; /* sequences have keys of their own number */
    bool right;   /* key j is seen when j <= i + right_by, counted from the corner */
    bool left;    /* key j is seen when j > i - left_by */
    bool bottom;  /* both are counted from the bottom right corner, of each sequence */
    bool blind;   /* by bounds, lengths or a mask a query could see no key */
    int64_t right_by, left_by;
} dnn_shape;

/* Whether sequences have keys of their own number, which may be none. */
bool dnn_has_lengths(const tn_op *op);

/* A bound that hides no key is none: so is the causal mask of a single query at the end. TN_UNSUPPORTED, with
 * why, for what cuDNN cannot be told. */
tn_status dnn_shape_of(const tn_op *op, dnn_shape *out, tn_refusal *why);

/* A dimension of Q, K, V or OUT, and how many elements lie from one to the next of them. */
enum { DNN_BATCH, DNN_HEADS, DNN_LENGTH, DNN_SIZE, DNN_RANK };

#endif
