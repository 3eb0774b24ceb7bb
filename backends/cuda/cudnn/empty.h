/* What becomes of sequences without keys, by a kernel of our own after all the rest: 9.14 left OUT and LSE of theirs as
 * NaN, on an H200. Only ops whose sequences have lengths of their own need it. */
#ifndef CUDA_CUDNN_EMPTY_H
#define CUDA_CUDNN_EMPTY_H

#include "../compile/code.h"
#include "tenon/module/kernel.h"

/* The kernel, as cuda_kernel_beside has it, and a run of it. */
tn_status dnn_empty_get(const tn_run *run, cuda_kernel **out, tn_error *err);
tn_status dnn_empty_run(const tn_run *run, cuda_kernel *kernel, tn_error *err);

#endif
