/* attention-sparse-backward: the backward pass of attention-sparse: computes DQ, DK and DV, with the
 * shapes of Q, K and V, from DOUT, with the shape of OUT.
 *
 * The operands up to SIZES and the parameters are those of the forward pass (attention_sparse.h),
 * whose results OUT and LSE are inputs here; LSE is required. An operand that attention-sparse has
 * too has the same index, and DOUT, DQ, DK and DV have those of attention-backward, so that code for
 * several of these ops needs no cases. Indices in between are reserved: they are absent.
 *
 * It computes what attention-backward computes with the boolean mask that attention_sparse.h
 * describes, and its rules about excluded keys hold here, too: an excluded key contributes to no
 * gradient of its query and gets no gradient from it; the same holds for all keys of a query whose
 * LSE is -infinity. Kernels visit only listed blocks, so the work is proportional to their number.
 *
 * attention_sparse.h has the USES bits and parameters, module/attention_sparse.h the functions that
 * check and read the tables.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_ATTENTION_SPARSE_BACKWARD_H
#define TENON_MODULE_OP_ATTENTION_SPARSE_BACKWARD_H

#include "attention_sparse.h"

enum { TN_OP_ATTENTION_SPARSE_BACKWARD = 16 };

enum {
    TN_ATTENTION_SPARSE_BACKWARD_Q = 0,
    TN_ATTENTION_SPARSE_BACKWARD_K = 1,
    TN_ATTENTION_SPARSE_BACKWARD_V = 2,
    TN_ATTENTION_SPARSE_BACKWARD_OUT = 3,
    TN_ATTENTION_SPARSE_BACKWARD_LSE = 4,
    TN_ATTENTION_SPARSE_BACKWARD_MASK = 5,
    TN_ATTENTION_SPARSE_BACKWARD_STARTS = 6,
    TN_ATTENTION_SPARSE_BACKWARD_BLOCKS = 7,
    TN_ATTENTION_SPARSE_BACKWARD_SIZES = 8,
    TN_ATTENTION_SPARSE_BACKWARD_DOUT = 12,
    TN_ATTENTION_SPARSE_BACKWARD_DQ = 13,
    TN_ATTENTION_SPARSE_BACKWARD_DK = 14,
    TN_ATTENTION_SPARSE_BACKWARD_DV = 15,
    TN_ATTENTION_SPARSE_BACKWARD_OPERANDS
};

#endif
