/* Internals of attention. */
#ifndef TNI_OPS_ATTENTION_H
#define TNI_OPS_ATTENTION_H

#include "op.h"
#include "tenon/attention.h"

/* Make the problems of calls, validated. */
tn_status tni_attention_make(const tn_attention_args *args, tni_problem *out, tn_error *err);
tn_status tni_attention_backward_make(const tn_attention_backward_args *args, tni_problem *out,
                                      tn_error *err);
tn_status tni_attention_merge_make(const tn_attention_merge_args *args, tni_problem *out,
                                   tn_error *err);

/* Members of the classes. */
extern const tn_setting tni_attention_settings[];
struct tni_fields;
tn_status tni_attention_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_attention_write(const tn_op *op, tni_buffer *out);

/* Sets which keys queries see under a mask of TN_MASK_...; returns false for an unknown mask. */
bool tni_attention_see(tn_attention_op *op, int32_t mask, int64_t left, int64_t right);

/* Whether the operand has no batch dimension in calls, as for a packed op. */
bool tni_attention_is_packed(const tn_op *op, int32_t operand);

/* Defaults. */
double tni_attention_scale(int64_t size);
tn_dtype tni_attention_lse(tn_dtype dtype);

/* Backend names by TN_BACKEND_...; NULL for an unnamed number and after the last. */
extern const char *const tni_attention_backends[TN_BACKEND_COUNT + 1];

/* Converts a layout between the memory layouts of TN_LAYOUT_... and [batch, heads, ...]. */
void tni_attention_turn(tn_layout *layout, int32_t way);

#endif
