/* attention from inside. */
#ifndef TNI_OPS_ATTENTION_H
#define TNI_OPS_ATTENTION_H

#include "op.h"
#include "tenon/attention.h"

/* The problems that calls are about, checked. */
tn_status tni_attention_make(const tn_attention_args *args, tni_problem *out, tn_error *err);
tn_status tni_attention_backward_make(const tn_attention_backward_args *args, tni_problem *out,
                                      tn_error *err);
tn_status tni_attention_merge_make(const tn_attention_merge_args *args, tni_problem *out,
                                   tn_error *err);

/* Of the classes. */
extern const tn_setting tni_attention_settings[];
struct tni_fields;
tn_status tni_attention_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_attention_write(const tn_op *op, tni_buffer *out);

/* Which keys a mask of TN_MASK_... lets queries see; false for no such mask. */
bool tni_attention_see(tn_attention_op *op, int32_t mask, int64_t left, int64_t right);

/* Whether calls bring the operand without the batch: that of a packed op. */
bool tni_attention_is_packed(const tn_op *op, int32_t operand);

/* What is usual where nothing is said. */
double tni_attention_scale(int64_t size);
tn_dtype tni_attention_lse(tn_dtype dtype);

/* A backend's name, by TN_BACKEND_...; NULL for none, and a NULL behind the last. */
extern const char *const tni_attention_backends[TN_BACKEND_COUNT + 1];

/* [batch, heads, ...] of the two ways to lie. */
void tni_attention_turn(tn_layout *layout, int32_t way);

#endif
