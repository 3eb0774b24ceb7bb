/* Attention by cuDNN: a plan of Tenon's contains cuDNN plans, which are compiled for one exact shape. */
#ifndef CUDA_CUDNN_ATTENTION_H
#define CUDA_CUDNN_ATTENTION_H

#include "tenon/module/kernel.h"

/* Returns the workspace that a plan may request: tables, partial results if there are few queries, and
 * partial gradients. */
uint64_t dnn_workspace(const tn_kernel_row *row, const tn_query *query);

tn_status dnn_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
void dnn_plan_release(const tn_run *run, void *any);
tn_status dnn_run(const tn_run *run, tn_error *err);

extern const tn_kernel_row cuda_dnn_attention_row, cuda_dnn_single_row, cuda_dnn_gradient_row,
    cuda_dnn_gradient_repeating_row;

#endif
