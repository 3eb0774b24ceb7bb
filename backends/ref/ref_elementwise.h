/* Shared by the operators on elements and on rows. */
#ifndef TNI_REF_ELEMENTWISE_H
#define TNI_REF_ELEMENTWISE_H

#include "ref.h"
#include "ref_element.h"
#include "ref_walk.h"
#include "tenon/module/op/elementwise.h"

typedef struct tni_ref_each {
    const tn_op *op;
    const tn_elementwise_op *each;
    const tni_ref_element *in; /* dtype 0 if absent, as below */
    const tni_ref_element *out;
    const tni_ref_element *other;  /* or weight, or cos */
    const tni_ref_element *fourth; /* bias, or sin */
    tni_ref_walk walk;
} tni_ref_each;

static inline const tni_ref_element *tni_ref_operand_element(const tn_op *op, int32_t operand)
{
    return tni_ref_element_of(operand < op->count ? op->operand[operand].dtype : TN_DTYPE_NONE);
}

/* Initializes everything but the walk. */
static inline tni_ref_each tni_ref_each_of(const tn_op *op)
{
    return (tni_ref_each){
        .op = op,
        .each = TN_PARAMS(op, elementwise),
        .in = tni_ref_operand_element(op, TN_ELEMENTWISE_IN),
        .out = tni_ref_operand_element(op, TN_ELEMENTWISE_OUT),
        .other = tni_ref_operand_element(op, 2),
        .fourth = tni_ref_operand_element(op, 3),
    };
}

/* Bytes between neighboring elements of an operand's row. */
static inline int64_t tni_ref_along(const tni_ref_each *each, int32_t operand)
{
    return each->walk.along[operand];
}

/* Runs an elementwise op. */
static inline tn_status tni_ref_each_run(const tn_run *run, tni_ref_piece_fn *piece)
{
    tni_ref_each each = tni_ref_each_of(run->op);
    tni_ref_walk_each(run->op, &each.walk);
    tni_ref_walk_run(&each.walk, run, piece, &each);
    return TN_OK;
}

/* Runs an op on rows along the last dimension. */
static inline tn_status tni_ref_rows_run(const tn_run *run, tni_ref_piece_fn *row)
{
    tni_ref_each each = tni_ref_each_of(run->op);
    tni_ref_walk_rows(run->op, 1, each.each->size, &each.walk);
    tni_ref_walk_run(&each.walk, run, row, &each);
    return TN_OK;
}

/* Checks that each of the op's first `count` operands is absent or f64, f32, bf16 or f16. names[i] is
 * the name of operand i's dtype in a refusal. */
tn_status tni_ref_admit_floats(const tn_query *query, const char *const *names, int32_t count,
                               tn_refusal *why);

/* All dtypes; all numeric ones; f64, f32, bf16, f16. Each list ends with 0. */
extern const tn_dtype tni_ref_all_dtypes[];
extern const tn_dtype tni_ref_number_dtypes[];
extern const tn_dtype tni_ref_float_dtypes[];

/* The fields that rows of operators on elements have in common. */
#define TNI_REF_ROW                                                                          \
    .struct_size = sizeof(tn_kernel_row), .platform = "cpu", .backend = "ref", .version = 1, \
    .free_dims = TN_ELEMENTWISE_DIM_ALL, .overhead_us = 0.3

#endif
