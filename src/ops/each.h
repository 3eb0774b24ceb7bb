/* Shared code of the elementwise and row-wise ops. */
#ifndef TNI_OPS_EACH_H
#define TNI_OPS_EACH_H

#include "op.h"

struct tni_fields;

/* Checks that the arguments are not NULL and have at least `needed` bytes. Every argument struct
 * begins with its size. */
tn_status tni_each_args(const char *where, const void *args, size_t needed, tn_error *err);

/* Checks that a reserved field of the arguments is 0; that a switch is 0 or 1. */
tn_status tni_each_reserved(const char *where, const char *name, uint32_t bits, tn_error *err);
tn_status tni_each_switch(const char *where, const char *name, int32_t value, tn_error *err);

/* Returns the names of an op's kinds, TN_UNARY_... and so on, NULL-terminated; NULL for an op
 * without kinds. */
const char *const *tni_each_kinds(int32_t op);

/* Families of dtypes, as bits. */
enum { TNI_DTYPE_BOOL = 1, TNI_DTYPE_INTEGER = 2, TNI_DTYPE_FLOAT = 4, TNI_DTYPE_COMPLEX = 8 };
uint32_t tni_each_family(tn_dtype dtype);

/* Checks of op validation, one for each function below: the kind is valid; in's dtype is of these
 * families; it is f64, f32, f16 or bf16; out's dtype is the same, or f32 for 16-bit floats; in has
 * a last dimension; in and out have the same shape; a per-row operand has in's dtype or f32. */
tn_status tni_each_check_kind(const tn_op *op, tn_error *err);
tn_status tni_each_check_family(const tn_op *op, uint32_t families, tn_error *err);
tn_status tni_each_check_floats(const tn_op *op, tn_error *err);
tn_status tni_each_check_out(const tn_op *op, tn_error *err);
tn_status tni_each_check_rank(const tn_op *op, tn_error *err);
tn_status tni_each_check_shape(const tn_op *op, tn_error *err);
tn_status tni_each_check_table(const tn_op *op, int32_t index, tn_error *err);

/* Returns f32 for 16-bit floats, otherwise TN_DTYPE_NONE. */
tn_dtype tni_each_wider(tn_dtype dtype);

/* The last step of validation: fills in what follows from the layouts, and checks that an op in
 * place can be in place. */
tn_status tni_each_finish(tn_op *op, tn_error *err);

/* The same for ops on rows of in's last dimension. */
tn_status tni_each_finish_rows(tn_op *op, tn_error *err);

/* Members of the classes. */
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
