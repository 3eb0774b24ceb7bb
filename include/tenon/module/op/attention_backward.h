/* attention-backward: the backward pass of attention: computes DQ, DK and DV, with the shapes of Q,
 * K and V, from DOUT, with the shape of OUT.
 *
 * Q, K, V, OUT, LSE, MASK, SEED and the parameters are those of the forward pass, whose results OUT
 * and LSE are inputs here. An operand that attention has too has the same index, so that code for
 * both passes needs no cases. SINKS, STARTS_Q, STARTS_K, LENGTHS and PAGES are reserved: they are
 * absent today, and once they are not, they come with the USES bits of attention.
 *
 * The rules of attention about excluded keys hold here, too: an excluded key contributes to no
 * gradient of its query and gets no gradient from it; the same holds for all keys of a query whose
 * LSE is -infinity. A weight that dropout dropped contributes nothing to DV and gets nothing from
 * V.
 *
 * attention.h has the USES bits, dimensions and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_ATTENTION_BACKWARD_H
#define TENON_MODULE_OP_ATTENTION_BACKWARD_H

#include "attention.h"

enum { TN_OP_ATTENTION_BACKWARD = 12 };

enum {
    TN_ATTENTION_BACKWARD_Q = 0,
    TN_ATTENTION_BACKWARD_K = 1,
    TN_ATTENTION_BACKWARD_V = 2,
    TN_ATTENTION_BACKWARD_OUT = 3,
    TN_ATTENTION_BACKWARD_LSE = 4,
    TN_ATTENTION_BACKWARD_MASK = 5,
    TN_ATTENTION_BACKWARD_SINKS = 6,    /* reserved */
    TN_ATTENTION_BACKWARD_STARTS_Q = 7, /* reserved */
    TN_ATTENTION_BACKWARD_STARTS_K = 8, /* reserved */
    TN_ATTENTION_BACKWARD_LENGTHS = 9,  /* reserved */
    TN_ATTENTION_BACKWARD_PAGES = 10,   /* reserved */
    TN_ATTENTION_BACKWARD_SEED = 11,
    TN_ATTENTION_BACKWARD_DOUT = 12,
    TN_ATTENTION_BACKWARD_DQ = 13,
    TN_ATTENTION_BACKWARD_DK = 14,
    TN_ATTENTION_BACKWARD_DV = 15,
    TN_ATTENTION_BACKWARD_OPERANDS
};

#endif
