/* Shared by our rows of the backward pass of attention. */
#ifndef CUDA_ATTENTION_BACKWARD_CUDA_H
#define CUDA_ATTENTION_BACKWARD_CUDA_H

#include "../attention/attention_cuda.h"
#include "attention_backward_args.h"

/* attention_backward_args.h and attention_backward_states.cuh. */
extern const cuda_text cuda_text_of_gradient_args, cuda_text_of_gradient_states;

enum {
    CUDA_GRADIENT_USES = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK |
                         TN_ATTENTION_USES_ADDITIVE | TN_ATTENTION_USES_GROUPS |
                         TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_LSE |
                         TN_ATTENTION_USES_DROPOUT | TN_ATTENTION_USES_VALUE_SIZE |
                         TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OFFSET
};

/* Checks Q, K, V and dOut, which kernels for tensor cores copy to shared memory, each by `admit`. */
typedef tn_status cuda_admit_operand(const tn_op *op, int32_t operand, const char *name,
                                     tn_refusal *why);
tn_status cuda_gradients_admit_operands(const tn_op *op, cuda_admit_operand *admit,
                                        tn_refusal *why);

/* Fills in the gradients and the workspace, in addition to cuda_attention_put. */
void cuda_gradients_put(const tn_run *run, cuda_gradient_args *to);

#endif
