/* reduce: in is reduced over its last `axes` dimensions, which are 1 in out, with stride 0.
 *
 * out has in's dtype. With the bit OUT_DTYPE, it is f32 for f16 and bf16, and i64 for sums of bool and
 * for integers narrower than 64 bits.
 *
 * Integer sums wrap in out's dtype. Over zero elements: sum is 0, prod 1, mean NaN; max and min
 * fail. If an element is NaN, max and min are NaN.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_REDUCE_H
#define TENON_MODULE_OP_REDUCE_H

#include "elementwise.h"

enum { TN_OP_REDUCE = 7 };

/* Numbers are never reused. */
enum {
    TN_REDUCE_SUM = 0,
    TN_REDUCE_MEAN = 1,
    TN_REDUCE_MAX = 2,
    TN_REDUCE_MIN = 3,
    TN_REDUCE_PROD = 4,
    TN_REDUCE_COUNT
};

#endif
