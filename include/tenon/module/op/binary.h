/* binary: out = f(in, other).
 *
 * Integer division truncates towards zero; division by zero gives 0. If an operand is NaN, max and
 * min are NaN.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_BINARY_H
#define TENON_MODULE_OP_BINARY_H

#include "elementwise.h"

enum { TN_OP_BINARY = 6 };

/* Numbers are never reused. */
enum {
    TN_BINARY_ADD = 0,
    TN_BINARY_SUB = 1,
    TN_BINARY_MUL = 2,
    TN_BINARY_DIV = 3,
    TN_BINARY_MAX = 4,
    TN_BINARY_MIN = 5,
    TN_BINARY_COUNT
};

#endif
