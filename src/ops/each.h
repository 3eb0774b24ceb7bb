/* What the helper ops share: those on elements and on rows of them. */
#ifndef TNI_OPS_EACH_H
#define TNI_OPS_EACH_H

#include "op.h"

struct tni_fields;

/* That arguments are there and not shorter than `needed` bytes. Every struct of them begins with its
 * size. */
tn_status tni_each_args(const char *where, const void *args, size_t needed, tn_error *err);

/* That a field of the arguments is 0, as nothing is known of it here, or 0 or 1. */
tn_status tni_each_reserved(const char *where, const char *name, uint32_t bits, tn_error *err);
tn_status tni_each_switch(const char *where, const char *name, int32_t value, tn_error *err);

/* The words of an op's kinds, TN_UNARY_... and so on, NULL-ended; NULL for an op that has none. */
const char *const *tni_each_kinds(int32_t op);

/* Families of dtypes, as bits. */
enum { TNI_DTYPE_BOOL = 1, TNI_DTYPE_INTEGER = 2, TNI_DTYPE_FLOAT = 4, TNI_DTYPE_COMPLEX = 8 };
uint32_t tni_each_family(tn_dtype dtype);

/* What settling an op checks, each in its own words: that its kind is one there is; that in's dtype is
 * of these families; that it is f64, f32, f16 or bf16; that out's is the same, or f32 for 16-bit floats;
 * that in has a last dimension; that in and out have one shape; that an operand that goes with rows is
 * of in's dtype or f32. */
tn_status tni_each_check_kind(const tn_op *op, tn_error *err);
tn_status tni_each_check_family(const tn_op *op, uint32_t families, tn_error *err);
tn_status tni_each_check_floats(const tn_op *op, tn_error *err);
tn_status tni_each_check_out(const tn_op *op, tn_error *err);
tn_status tni_each_check_rank(const tn_op *op, tn_error *err);
tn_status tni_each_check_shape(const tn_op *op, tn_error *err);
tn_status tni_each_check_table(const tn_op *op, int32_t index, tn_error *err);

/* f32 for 16-bit floats, else TN_DTYPE_NONE. */
tn_dtype tni_each_wider(tn_dtype dtype);

/* The end of settling: what follows from the layouts, and that an op in place can be. */
tn_status tni_each_finish(tn_op *op, tn_error *err);

/* The same, with rows of in's last dimension. */
tn_status tni_each_finish_rows(tn_op *op, tn_error *err);

/* Of the classes. */
tn_status tni_each_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_each_write(const tn_op *op, tni_buffer *out);
double tni_each_bytes(const tn_op *op);
size_t tni_each_words(const tn_op *op, uint64_t *out);
void tni_each_free(tn_op *op, uint64_t dims);
extern const tn_setting tni_each_settings[];
extern const char *const tni_each_uses[];
extern const char *const tni_each_in_out[];

#define TNI_EACH_CLASS                                                             \
    .outputs = 1U << TN_EACH_OUT, .output = TN_EACH_OUT, .group = TNI_OPS_EACH,    \
    .settings = tni_each_settings, .uses = tni_each_uses, .parse = tni_each_parse, \
    .write = tni_each_write, .words = tni_each_words, .free = tni_each_free

#endif
