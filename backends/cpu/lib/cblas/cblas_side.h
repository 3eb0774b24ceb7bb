/* The layout of an operand, for libraries that have row-major or column-major matrices with a
 * leading dimension. */
#ifndef TENON_BACKENDS_CPU_CBLAS_SIDE_H
#define TENON_BACKENDS_CPU_CBLAS_SIDE_H

#include "../../matmul/matmul_product.h"

typedef struct tni_side {
    int64_t leading; /* leading dimension: elements from one row, or column, to the next */
    bool by_columns;
} tni_side;

typedef struct tni_sides {
    tni_side a, b, out; /* out is row-major */
} tni_sides;

/* Describes an op, transposed if needed so that out is row-major. Fails with TN_UNSUPPORTED, and
 * the reason, if strides cannot be expressed this way in 32 bits. Pure. */
tn_status tni_sides_describe(const tn_op *op, tni_mm_product *out, tni_sides *out_sides,
                             tn_refusal *why);

#endif
