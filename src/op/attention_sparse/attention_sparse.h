/* Internals of attention-sparse, most of which its backward pass shares. */
#ifndef TNI_OP_ATTENTION_SPARSE_H
#define TNI_OP_ATTENTION_SPARSE_H

#include "op/attention/attention.h"
#include "tenon/attention_sparse.h"
#include "tenon/module/op/attention_sparse_backward.h"

/* Members of the classes. */
tn_status tni_attention_sparse_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op,
                                     tn_error *err);
tn_status tni_attention_sparse_validate(tn_op *op, tn_error *err);
void tni_attention_sparse_write(const tn_op *op, tni_buffer *out);
void tni_attention_sparse_cost(const tn_op *op, double *out_flops, double *out_bytes);
size_t tni_attention_sparse_words(const tn_op *op, uint64_t *out);
void tni_attention_sparse_free(tn_op *op, uint64_t dims);
extern const char *const tni_attention_sparse_uses[];

#define TNI_ATTENTION_SPARSE_CLASS                                                  \
    .group = TNI_OPS_ATTENTION, .settings = tni_attention_settings,                 \
    .uses = tni_attention_sparse_uses, .parse = tni_attention_sparse_parse,         \
    .validate = tni_attention_sparse_validate, .write = tni_attention_sparse_write, \
    .cost = tni_attention_sparse_cost, .words = tni_attention_sparse_words,         \
    .free = tni_attention_sparse_free

/* Members of tni_op_check: the tables and the error bound. */
bool tni_attention_sparse_is_table(const tn_op *op, int32_t operand);
void tni_attention_sparse_fill_table(struct tni_operands *operands, int32_t index,
                                     double (*draw)(void *user), void *user);
tn_status tni_attention_sparse_bound_init(struct tni_bounds *bounds, tn_error *err);
void tni_attention_sparse_bound_release(struct tni_bounds *bounds);
double tni_attention_sparse_bound(struct tni_bounds *bounds, const tni_place *place, double size);

/* Finishes the problem of a call: stores the numbers, converts the layouts from the call's memory
 * layout, sets the default scale and validates the op. */
tn_status tni_attention_sparse_finish(tn_op *op, const tni_attention_numbers *numbers,
                                      int64_t block_queries, int64_t block_keys, tn_error *err);

static inline bool tni_attention_sparse_is_backward(const tn_op *op)
{
    return op->kind == TN_OP_ATTENTION_SPARSE_BACKWARD;
}

/* Whether an operand is one of Q, K, V, OUT, DOUT, DQ, DK and DV. */
static inline bool tni_attention_sparse_is_whole(int32_t operand)
{
    return operand <= TN_ATTENTION_SPARSE_OUT || operand >= TN_ATTENTION_SPARSE_BACKWARD_DOUT;
}

/* Number of blocks of `size` that cover `all`; `size` must be at least 1. */
static inline int64_t tni_attention_sparse_blocks(int64_t all, int64_t size)
{
    return all / size + (all % size > 0);
}

#endif
