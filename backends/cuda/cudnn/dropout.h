/* Dropout, by the numbers that an op's seed and offset stand for, and not by cuDNN's own: a kernel writes a mask for all
 * weights, 1 for those that are kept and 0 for the others, and graphs multiply by it. */
#ifndef CUDA_CUDNN_DROPOUT_H
#define CUDA_CUDNN_DROPOUT_H

#include "../compile/code.h"
#include "sdpa.h"

/* Memory for the mask; 0 for an op without dropout. As f64, which no size of an op overflows. */
double dnn_kept_bytes(const tn_op *op);

/* The mask, for graphs. */
dnn_desc dnn_kept(const dnn_sdpa *s);

/* The kernel, as cuda_kernel_beside has it, and a run of it, which writes to memory that is aligned to eight bytes. */
tn_status dnn_keeper_get(const tn_run *run, cuda_kernel **out, tn_error *err);
tn_status dnn_keeper_run(const tn_run *run, cuda_kernel *kernel, void *to, tn_error *err);

#endif
