/* Internals of matmul. */
#ifndef TNI_OP_MATMUL_H
#define TNI_OP_MATMUL_H

#include "op/op.h"
#include "tenon/matmul.h"

/* Checks that products that are computed at once do not overlap. Fails with TN_INVALID_ARGUMENT,
 * naming two as "groups[3]", if one writes memory that the other reads or writes. The problems are
 * those of `args`, all on one device. Takes the time of sorting the outs; more if outs interleave
 * in memory and are not columns of one matrix. */
tn_status tni_matmul_apart(const tn_matmul_args *const *args, const tni_problem *const *problems,
                           size_t count, const char *where, tn_error *err);

/* Swaps the last two dimensions, if there are two. */
void tni_matmul_transpose(tn_layout *layout);

/* Names of TN_ACT_..., NULL-terminated. */
extern const char *const tni_matmul_activations[];

/* Members of the class. */
struct tni_fields;
tn_status tni_matmul_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_matmul_write(const tn_op *op, tni_buffer *out);

/* Default dtypes for A and B of a dtype. */
tn_dtype tni_matmul_acc(tn_dtype dtype);
tn_dtype tni_matmul_out(tn_dtype dtype);

#endif
