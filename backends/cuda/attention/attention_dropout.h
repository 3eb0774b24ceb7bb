/* Dropout masks of attention, for libraries that read them. */
#ifndef CUDA_ATTENTION_DROPOUT_H
#define CUDA_ATTENTION_DROPOUT_H

#include "../kernels/layout.h"
#include "attention_args.h"
#include "tenon/module/op/attention.h"

/* The kernel for dropout masks of at most 2^31 - 1 elements. */
extern const cuda_case cuda_dropout_case;

/* Returns the least 24-bit number k that is kept: k / 2^24 is at least the op's dropout. */
static inline unsigned cuda_dropout_least(double dropout)
{
    const double bound = dropout * (1 << 24);
    const unsigned whole = (unsigned)bound;
    return whole + ((double)whole < bound);
}

/* `one` is written for kept weights. */
cuda_dropout_args cuda_dropout_args_of(const tn_attention_op *at, void *out, int64_t elements,
                                       uint16_t one);

#endif
