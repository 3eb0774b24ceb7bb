/* Writes the results of sequences without keys, with a kernel of our own after all other steps: cuDNN 9.14 left NaN
 * in their OUT and LSE, on an H200. Only needed by ops whose sequences have individual lengths. */
#ifndef CUDA_CUDNN_EMPTY_H
#define CUDA_CUDNN_EMPTY_H

#include "../../compile/code.h"
#include "tenon/module/kernel.h"

/* Gets the kernel, with the contract of cuda_kernel_beside, and runs it. */
tn_status dnn_empty_get(const tn_run *run, cuda_kernel **out, tn_error *err);
tn_status dnn_empty_run(const tn_run *run, cuda_kernel *kernel, tn_error *err);

#endif
