/* A product as cuBLAS and cuBLASLt see it, by columns: out is `left` times `right`. Where out lies by rows, as it
 * mostly does, that is out transposed, so that left is B and right is A. */
#ifndef CUDA_CUBLAS_SHAPE_H
#define CUDA_CUBLAS_SHAPE_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* A matrix by columns. */
typedef struct lt_matrix {
    int64_t rows, columns;
    int64_t leading;      /* between columns  */
    int64_t batch_stride; /* between matrices */
    bool turned;          /* its transpose goes into the product */
} lt_matrix;

typedef struct lt_shape {
    int32_t left, right; /* operands of the op */
    lt_matrix matrix[3]; /* by the op's operands: A, B, out */
    int64_t batch;
    int32_t
        outer; /* of the batch's dimensions: the first ones, which one stride does not lead along, are not in it */
    bool out_by_rows;
} lt_shape;

/* Whether it has no outputs. */
bool lt_is_empty(const tn_op *op);

/* TN_UNSUPPORTED, with why, for what it cannot be told. */
tn_status lt_shape_of(const tn_op *op, lt_shape *out, tn_refusal *why);

/* The same for who computes one batch after another, where the whole one has no stride: along its outer dimensions. */
tn_status lt_shape_split(const tn_op *op, lt_shape *out, tn_refusal *why);

/* A place in the outer dimensions, which begins as 0, and what lies before it of A, B and out, in elements. */
typedef struct lt_place {
    int64_t at[TN_OP_RANK_MAX];
    int64_t offset[3];
} lt_place;

/* The next one; false after the last. */
bool lt_place_next(const tn_op *op, const lt_shape *shape, lt_place *io);

#endif
