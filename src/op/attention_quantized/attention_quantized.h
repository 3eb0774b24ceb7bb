/* Internals of attention-quantized. */
#ifndef TNI_OP_ATTENTION_QUANTIZED_H
#define TNI_OP_ATTENTION_QUANTIZED_H

#include "op/attention/attention.h"
#include "tenon/attention_quantized.h"

/* Members of the class: the problem's text. */
tn_status tni_attention_quantized_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op,
                                        tn_error *err);
void tni_attention_quantized_write(const tn_op *op, tni_buffer *out);

/* Members of the check: error bounds. */
struct tni_bounds;
tn_status tni_attention_quantized_bounds_init(struct tni_bounds *bounds, tn_error *err);
void tni_attention_quantized_bounds_release(struct tni_bounds *bounds);
double tni_attention_quantized_bound(struct tni_bounds *bounds, const tni_place *place,
                                     double size);

#endif
