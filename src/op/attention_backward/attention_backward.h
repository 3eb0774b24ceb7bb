/* Internals of attention-backward. */
#ifndef TNI_OP_ATTENTION_BACKWARD_H
#define TNI_OP_ATTENTION_BACKWARD_H

#include "op/op_check.h"

/* Computes OUT and LSE, in the host's blocks, by the forward pass: with random ones the weights would
 * be arbitrary, and infinite for large scales. Runs the kernel that is chosen on the CPU; if no
 * kernel accepts the forward pass, leaves them as they are. The second function is for any op whose
 * first operands and parameters are those of the class. */
tn_status tni_attention_forward_fill(const struct tni_operands *operands, tn_error *err);
tn_status tni_attention_forward_fill_by(const tni_op_class *class,
                                        const struct tni_operands *operands, tn_error *err);

#endif
