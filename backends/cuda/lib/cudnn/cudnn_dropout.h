/* Dropout with the random numbers that the op's seed and offset define, instead of cuDNN's own: a kernel writes a
 * mask for all weights, 1 for kept ones and 0 for the others, and graphs multiply by it. */
#ifndef CUDA_CUDNN_DROPOUT_H
#define CUDA_CUDNN_DROPOUT_H

#include "../../compile/code.h"
#include "sdpa.h"

/* Returns the bytes of the mask; 0 for an op without dropout. The type is double, which no size of
 * an op overflows. */
double dnn_kept_bytes(const tn_op *op);

/* Returns the mask's tensor, for graphs. */
dnn_desc dnn_kept(const dnn_sdpa *s);

/* Gets the kernel, with the contract of cuda_kernel_beside, and runs it. `to` must be aligned to 8 bytes. */
tn_status dnn_keeper_get(const tn_run *run, cuda_kernel **out, tn_error *err);
tn_status dnn_keeper_run(const tn_run *run, cuda_kernel *kernel, void *to, tn_error *err);

#endif
