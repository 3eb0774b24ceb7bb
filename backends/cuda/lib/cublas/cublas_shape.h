/* A product in the column-major form of cuBLAS and cuBLASLt: out is `left` times `right`. If out is row-major, as
 * it usually is, this computes out transposed, so left is B and right is A. */
#ifndef CUDA_CUBLAS_SHAPE_H
#define CUDA_CUBLAS_SHAPE_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* A column-major matrix. */
typedef struct lt_matrix {
    int64_t rows, columns;
    int64_t leading;      /* leading dimension: between columns */
    int64_t batch_stride; /* between matrices */
    bool turned;          /* transposed in the product */
} lt_matrix;

typedef struct lt_shape {
    int32_t left, right; /* operands of the op */
    lt_matrix matrix[3]; /* by the op's operands: A, B, out */
    int64_t batch;
    int32_t outer; /* leading batch dimensions outside `batch`: no single stride covers them */
    bool out_by_rows;
} lt_shape;

/* Returns the dimension along which an operand's elements are contiguous: the last, if its rows are, or the one before. */
int32_t lt_along(const tn_layout *layout);

/* Returns whether rows, and not columns, are contiguous in an operand. */
bool lt_lies_by_rows(const tn_layout *layout);

/* Returns whether it has no outputs. */
bool lt_is_empty(const tn_op *op);

/* Fails with TN_UNSUPPORTED and the reason if the libraries cannot express the product. */
tn_status lt_shape_of(const tn_op *op, lt_shape *out, tn_refusal *why);

/* The same for callers that compute one batch after another along the outer dimensions, if the whole batch has no
 * single stride. */
tn_status lt_shape_split(const tn_op *op, lt_shape *out, tn_refusal *why);

/* A position in the outer dimensions, initially 0, and its offsets in A, B and out, in elements. */
typedef struct lt_place {
    int64_t at[TN_OP_RANK_MAX];
    int64_t offset[3];
} lt_place;

/* Advances to the next position; returns false after the last. */
bool lt_place_next(const tn_op *op, const lt_shape *shape, lt_place *io);

#endif
