/* matmul from inside. */
#ifndef TNI_OPS_MATMUL_H
#define TNI_OPS_MATMUL_H

#include "op.h"
#include "tenon/matmul.h"

/* The problem that a call is about, checked. */
tn_status tni_matmul_make(const tn_matmul_args *args, tni_problem *out, tn_error *err);

/* That products which are computed at once are apart: TN_INVALID_ARGUMENT names two, as "groups[3]", of which one writes
 * where the other reads or writes. The problems are those of `args`, all of one device. Takes the time of
 * putting the outs in order; more where what is not columns of one matrix lies between each other. */
tn_status tni_matmul_apart(const tn_matmul_args *const *args, const tni_problem *const *problems,
                           size_t count, const char *where, tn_error *err);

/* The last two dimensions, where there are as many. */
void tni_matmul_transpose(tn_layout *layout);

/* TN_ACT_... in words, NULL-ended. */
extern const char *const tni_matmul_activations[];

/* Of the class. */
extern const tn_setting tni_matmul_settings[];
struct tni_fields;
tn_status tni_matmul_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_matmul_write(const tn_op *op, tni_buffer *out);

/* What is usual for A and B of a dtype. */
tn_dtype tni_matmul_acc(tn_dtype dtype);
tn_dtype tni_matmul_out(tn_dtype dtype);

#endif
