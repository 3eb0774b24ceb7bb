/* Shared code of the elementwise and row-wise ops. */
#ifndef TNI_OP_ELEMENTWISE_H
#define TNI_OP_ELEMENTWISE_H

#include "fields.h"
#include "op.h"
#include "tenon/module/op/elementwise.h"

/* Checks that the arguments are not NULL and have at least `needed` bytes. Every argument struct
 * begins with its size. `where` is the function's name: the struct of tn_NOUN is tn_NOUN_args. */
tn_status tni_elementwise_args(const char *where, const void *args, size_t needed, tn_error *err);

/* Checks that a reserved field of the arguments is 0; that a switch is 0 or 1. */
tn_status tni_elementwise_reserved(const char *where, const char *name, uint32_t bits,
                                   tn_error *err);
tn_status tni_elementwise_switch(const char *where, const char *name, int32_t value, tn_error *err);

/* How an op of the family differs from the others. */
typedef struct tni_elementwise {
    const char *const *kinds; /* names of TN_UNARY_... and so on, NULL-terminated; NULL: no kinds */
    const char *const *stride_keys; /* in the problem's text, of the operands after out */
    const char *out_key; /* in the problem's text, of out's dtype; NULL: out has in's dtype */
    bool has_no_input;
    bool needs_out;    /* the text must have out's dtype, which may be any */
    bool needs_rank;   /* in must have a last dimension */
    int32_t rows_from; /* operands from this index on are one row for all rows of in; 0: none */
    int32_t tables;    /* TNI_TABLES_...: the operands after out are tables */

    /* Parse and write the op's own fields. NULL: it has none. */
    tn_status (*parse)(tni_fields *fields, const int64_t *shape, int32_t rank, tn_op *op,
                       tn_error *err);
    void (*write)(const tn_op *op, tni_buffer *out);

    /* Makes the default layout of an operand for a shape; its dtype is set. NULL: dense, of that
     * shape. */
    void (*layout)(const tn_op *op, int32_t index, const int64_t *shape, int32_t rank,
                   tn_layout *out);

    /* Parses the fields that change the layouts, other than strides, after the layouts were set to
     * their defaults. NULL: no such fields. */
    tn_status (*parse_layouts)(tni_fields *fields, tn_op *op, tn_error *err);

    uint64_t (*uses)(const tn_op *op); /* bits that only this op has; NULL: none */
} tni_elementwise;

/* Operands with in's dtype or f32: absent unless the text has them, or always present. */
enum { TNI_TABLES_NONE, TNI_TABLES_OPTIONAL, TNI_TABLES_PRESENT };

/* Returns the name of the op's kind. */
const char *tni_elementwise_kind(const tn_op *op);

/* Families of dtypes, as bits. */
enum { TNI_DTYPE_BOOL = 1, TNI_DTYPE_INTEGER = 2, TNI_DTYPE_FLOAT = 4, TNI_DTYPE_COMPLEX = 8 };
uint32_t tni_elementwise_family(tn_dtype dtype);

/* Checks of op validation, one for each function below: the kind is valid; in's dtype is of these
 * families; it is f64, f32, f16 or bf16; out's dtype is the same, or f32 for 16-bit floats; in has
 * a last dimension; in and out have the same shape; a table has in's dtype or f32. */
tn_status tni_elementwise_check_kind(const tn_op *op, tn_error *err);
tn_status tni_elementwise_check_family(const tn_op *op, uint32_t families, tn_error *err);
tn_status tni_elementwise_check_floats(const tn_op *op, tn_error *err);
tn_status tni_elementwise_check_out(const tn_op *op, tn_error *err);
tn_status tni_elementwise_check_rank(const tn_op *op, tn_error *err);
tn_status tni_elementwise_check_shape(const tn_op *op, tn_error *err);
tn_status tni_elementwise_check_table(const tn_op *op, int32_t index, tn_error *err);

/* Returns f32 for 16-bit floats, otherwise TN_DTYPE_NONE. */
tn_dtype tni_elementwise_wider(tn_dtype dtype);

/* The last step of validation: fills in what follows from the layouts, and checks that an op in
 * place can be in place. */
tn_status tni_elementwise_finish(tn_op *op, tn_error *err);

/* The same for ops on rows of in's last dimension. */
tn_status tni_elementwise_finish_rows(tn_op *op, tn_error *err);

/* Members of the classes. */
tn_status tni_elementwise_parse(tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_elementwise_write(const tn_op *op, tni_buffer *out);
double tni_elementwise_bytes(const tn_op *op);
size_t tni_elementwise_words(const tn_op *op, uint64_t *out);
void tni_elementwise_free(tn_op *op, uint64_t dims);
extern const char *const tni_elementwise_uses[];
extern const char *const tni_elementwise_in_out[];

/* Checks kind (if the op has kinds), dtypes, rank and shape of an op on rows of floats. */
tn_status tni_elementwise_check_rows(const tn_op *op, tn_error *err);

/* Cost: one operation for each element of out; bytes of all operands. */
void tni_elementwise_cost_simple(const tn_op *op, double *out_flops, double *out_bytes);

/* Length of the sums of reductions and ops on rows. */
double tni_elementwise_terms(const tn_op *op);

#define TNI_ELEMENTWISE_CLASS                                                                     \
    .outputs = 1U << TN_ELEMENTWISE_OUT, .output = TN_ELEMENTWISE_OUT,                            \
    .group = TNI_OPS_ELEMENTWISE, .settings = tni_elementwise_settings,                           \
    .uses = tni_elementwise_uses, .parse = tni_elementwise_parse, .write = tni_elementwise_write, \
    .words = tni_elementwise_words, .free = tni_elementwise_free

#endif
