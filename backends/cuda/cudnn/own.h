/* Kernels of Tenon's own that run before cuDNN's, or after them. */
#ifndef CUDA_CUDNN_OWN_H
#define CUDA_CUDNN_OWN_H

#include "../compile/code.h"
#include "tenon/module/kernel.h"

/* TN_UNSUPPORTED, with `what` it is for, where it cannot be made or loaded, for want of a compiler too: what does not
 * need it is taken all the same. */
tn_status dnn_own_get(const tn_run *run, const cuda_case *wanted, const char *what,
                      cuda_kernel **out, tn_error *err);

/* What becomes of sequences without keys, after all the rest: 9.14 left OUT and LSE of theirs as NaN, on an H200. Only
 * ops whose sequences have lengths of their own need it. */
tn_status dnn_empty_get(const tn_run *run, cuda_kernel **out, tn_error *err);
tn_status dnn_empty_run(const tn_run *run, cuda_kernel *kernel, tn_error *err);

#endif
