/* How an operand of a product lies, for libraries that know rows, columns and the distance between them. */
#ifndef TENON_BACKENDS_CPU_CBLAS_SIDE_H
#define TENON_BACKENDS_CPU_CBLAS_SIDE_H

#include "../matmul/product.h"

typedef struct tni_side {
    int64_t leading; /* elements from one row, or column, to the next */
    bool by_columns;
} tni_side;

typedef struct tni_sides {
    tni_side a, b, out; /* out lies by rows */
} tni_sides;

/* Describes an op, turned so that out lies by rows. TN_UNSUPPORTED, with the reason, for strides that cannot
 * be said so in 32 bits. Pure. */
tn_status tni_sides_describe(const tn_op *op, tni_mm_product *out, tni_sides *out_sides,
                             tn_refusal *why);

#endif
