/* Internals of attention-sparse. */
#ifndef TNI_OP_ATTENTION_SPARSE_H
#define TNI_OP_ATTENTION_SPARSE_H

#include "op/attention/attention.h"
#include "tenon/attention_sparse.h"

/* Members of the class: the problem's text. */
tn_status tni_attention_sparse_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op,
                                     tn_error *err);
void tni_attention_sparse_write(const tn_op *op, tni_buffer *out);

/* Whether an operand is one of Q, K, V and OUT. */
static inline bool tni_attention_sparse_is_whole(int32_t operand)
{
    return operand <= TN_ATTENTION_SPARSE_OUT;
}

/* Number of blocks of `size` that cover `all`; `size` must be at least 1. */
static inline int64_t tni_attention_sparse_blocks(int64_t all, int64_t size)
{
    return all / size + (all % size > 0);
}

#endif
