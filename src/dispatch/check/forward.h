/* What a problem of gradients needs to have come from: its forward pass. */
#ifndef TNI_DISPATCH_FORWARD_H
#define TNI_DISPATCH_FORWARD_H

#include "inputs.h"

/* Computes, in the host's blocks, what a gradient's op takes from its forward pass: of attention-backward
 * OUT and LSE, without which weights would be any numbers, and infinite ones at great scales. The processor
 * computes them, by the kernel that is chosen there; where none serves, and of other ops, they stay as they are. */
tn_status tni_forward_fill(const tni_operands *operands, tn_error *err);

#endif
