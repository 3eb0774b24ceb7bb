/* Shared by the operators along the last dimension: how threads share a row, the arguments, plans and their launch.
 * Their kernels start with rowwise.cuh. */
#ifndef CUDA_KERNELS_ROWWISE_H
#define CUDA_KERNELS_ROWWISE_H

#include "layout.h"

#include "tenon/module/op/elementwise.h"

/* rowwise.cuh; CUDA_ROWWISE_PARTS are parts of these operators' units. */
extern const cuda_text cuda_text_of_rowwise;
#define CUDA_ROWWISE_PARTS &cuda_text_of_block, &cuda_text_of_rowwise

/* How threads share a row. */
typedef struct cuda_sharing {
    int group;   /* threads per row: a warp or a block */
    int per;     /* elements in the registers of a thread; 0: the row is too long for registers */
    int vector;  /* elements that are read together */
    int at_once; /* a vector is read and written at once */
    int full;    /* the threads hold exactly one row */
    int packed;  /* weights and biases are read at once, too */
} cuda_sharing;

/* Returns the sharing of the op's rows, without `packed`. The assignment of elements to threads depends only on
 * dtypes and the row's length, so that a row's result does not depend on other rows or on its position. */
cuda_sharing cuda_rowwise_sharing(const tn_op *op);

/* Returns whether every row of the operand is aligned to whole vectors: all strides before it and the alignment are
 * multiples of them. True for an absent operand. */
bool cuda_rowwise_has_vectors(const tn_op *op, int32_t operand, int64_t vector);

/* Returns the type's name in the kernels' sources; "f32" for an absent operand. */
const char *cuda_rowwise_type(tn_dtype dtype);

/* A kernel of an operator. */
typedef struct cuda_rowwise {
    const cuda_unit *unit;
    const char *function;
    const char *options; /* those of the operator; cuda_rowwise_plan adds types and sharing */
    cuda_sharing sharing;
    int64_t threads; /* that have work; the kernel numbers them from 0 */
} cuda_rowwise;

/* A row's `plan`, with this kernel. */
tn_status cuda_rowwise_plan(const tn_run *run, const cuda_rowwise *variant, void **out,
                            uint64_t *out_bytes, tn_error *err);

/* A row's `run`. */
tn_status cuda_rowwise_run(const tn_run *run, tn_error *err);

/* A row's `admit`: f64 only with f64, because computation is in in's type. */
tn_status cuda_rowwise_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);

/* What all of them honour, and their numerics. */
enum {
    CUDA_ROWWISE_USES = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST |
                        TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE
};
#define CUDA_ROWWISE_NUMERICS (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)

#endif
