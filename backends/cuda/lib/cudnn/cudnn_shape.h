/* Attention in cuDNN's terms: which bounds on visible keys are effective, and from which corner they count. */
#ifndef CUDA_CUDNN_SHAPE_H
#define CUDA_CUDNN_SHAPE_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

typedef struct dnn_shape {
    bool lengths; /* sequences have individual numbers of keys */
    bool right;   /* key j is visible if j <= i + right_by, counted from the corner */
    bool left;    /* key j is visible if j > i - left_by */
    bool bottom;  /* both count from the bottom right corner of each sequence */
    bool blind;   /* bounds, lengths or a mask may hide all keys from a query */
    int64_t right_by, left_by;
} dnn_shape;

/* Returns whether sequences have individual numbers of keys, which may be 0. */
bool dnn_has_lengths(const tn_op *op);

/* A bound that hides no key is dropped, for example the causal mask of a single query at the end. Fails with
 * TN_UNSUPPORTED and the reason if cuDNN cannot express the problem. */
tn_status dnn_shape_of(const tn_op *op, dnn_shape *out, tn_refusal *why);

/* The dimensions of Q, K, V and OUT, as indices of shapes and strides. */
enum { DNN_BATCH, DNN_HEADS, DNN_LENGTH, DNN_SIZE, DNN_RANK };

#endif
