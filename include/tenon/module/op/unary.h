/* unary: out = f(in).
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_UNARY_H
#define TENON_MODULE_OP_UNARY_H

#include "elementwise.h"

enum { TN_OP_UNARY = 5 };

/* relu, gelu, gelu-tanh and silu are those of activation.h. Numbers are never reused. */
enum {
    TN_UNARY_NEG = 0,
    TN_UNARY_ABS = 1,
    TN_UNARY_SQRT = 2,
    TN_UNARY_RSQRT = 3,
    TN_UNARY_EXP = 4,
    TN_UNARY_LOG = 5,
    TN_UNARY_TANH = 6,
    TN_UNARY_SIGMOID = 7,
    TN_UNARY_RELU = 8,
    TN_UNARY_GELU = 9,
    TN_UNARY_GELU_TANH = 10,
    TN_UNARY_SILU = 11,
    TN_UNARY_COUNT
};

#endif
