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
static inline void tni_matmul_transpose(tn_layout *layout)
{
    if (layout->rank >= 2)
        tni_layout_swap(layout, layout->rank - 2, layout->rank - 1);
}

/* Names of TN_ACT_..., NULL-terminated. */
extern const char *const tni_matmul_activations[];

/* Members of the class. */
struct tni_fields;
tn_status tni_matmul_parse(struct tni_fields *fields, tn_dtype dtype, tn_op *op, tn_error *err);
void tni_matmul_write(const tn_op *op, tni_buffer *out);

/* Default dtypes for A and B of a dtype. */
static inline tn_dtype tni_matmul_acc(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F8_E4M3FN:
    case TN_F8_E5M2:
    case TN_F16:
    case TN_BF16: return TN_F32;
    case TN_I8:
    case TN_U8: return TN_I32;
    default: return dtype;
    }
}

static inline tn_dtype tni_matmul_out(tn_dtype dtype)
{
    return dtype == TN_I8 || dtype == TN_U8               ? TN_I32
           : dtype == TN_F8_E4M3FN || dtype == TN_F8_E5M2 ? TN_F32
                                                          : dtype;
}

#endif
