/* Fields of problem texts that attention-sparse and attention-quantized share. Their operands Q, K, V,
 * OUT and LSE have attention's indices. */
#ifndef TNI_OP_ATTENTION_FIELDS_H
#define TNI_OP_ATTENTION_FIELDS_H

#include "attention.h"

#include "op/fields.h"

/* A field with an integer of at least `least`. Without it, `*to` becomes `*other`, or if that is
 * NULL, the field is missing. */
typedef struct tni_attention_number {
    const char *key;
    int64_t *to;
    int64_t least;
    const int64_t *other;
} tni_attention_number;

/* What the layouts of Q, K, V, OUT and LSE follow from. */
typedef struct tni_attention_form {
    tn_attention_op at; /* its sizes, and when parsed, no others */
    int64_t lse;        /* whether LSE exists */
    tn_dtype out;
    int32_t way; /* TN_LAYOUT_... */
} tni_attention_form;

/* Makes the default layouts of all operands of an op. */
typedef void tni_attention_make_layouts(const tni_attention_form *form, const tn_op *op,
                                        tn_dtype dtype, tn_layout *out);

tn_status tni_attention_parse_integers(tni_fields *fields, const tni_attention_number *numbers,
                                       size_t count, tn_error *err);

/* Parses b, h, hk, l, lq, lk, d, dv, layout and out; and into `at` mask and scale. */
tn_status tni_attention_parse_form(tni_fields *fields, tn_dtype dtype, tni_attention_form *out,
                                   tn_attention_op *at, tn_error *err);

/* Parses the strides of the operands that exist, whose layouts are made. */
tn_status tni_attention_parse_strides(tni_fields *fields, const char *const *keys, tn_op *op,
                                      tn_error *err);

/* Makes the default layouts of Q, K, V, OUT and LSE; that of an LSE that does not exist has no
 * dtype. */
void tni_attention_make_form(const tni_attention_form *form, tn_dtype dtype, tn_layout *out);

/* Takes the form of a validated op, without `way`. */
void tni_attention_take_form(const tn_op *op, const tn_attention_op *at, tni_attention_form *out);

/* Makes the layouts that strides are compared with, and sets the way: blhd only if Q, K, V, OUT and
 * gradients are dense in it and not in bhld. */
void tni_attention_make_nearest(tni_attention_form *form, const tn_op *op,
                                tni_attention_make_layouts *make, tn_layout *out);

/* Write what was parsed. An operator writes its own fields before each. */
void tni_attention_write_sizes(const tni_attention_form *form, tni_buffer *out);
void tni_attention_write_way(const tni_attention_form *form, tni_buffer *out); /* and the mask */
void tni_attention_write_end(const tni_attention_form *form, const tn_op *op,
                             const char *const *keys, const tn_layout *nearest, tni_buffer *out);

#endif
