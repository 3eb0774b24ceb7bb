/* rotary: rotary position embedding.
 *
 * The first `size` elements of the last dimension are rotated in pairs: (x, y) becomes
 * (x cos - y sin, x sin + y cos); the others are copied. COS and SIN have in's shape, except that
 * the last dimension is size / 2, and in's dtype or f32.
 *
 *     halves  x is element i, y is element i + size / 2
 *     pairs   x is element 2 i, y is element 2 i + 1
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_ROTARY_H
#define TENON_MODULE_OP_ROTARY_H

#include "elementwise.h"

enum { TN_OP_ROTARY = 10 };

enum { TN_ROTARY_COS = 2, TN_ROTARY_SIN = 3 };

/* Numbers are never reused. */
enum { TN_ROTARY_HALVES = 0, TN_ROTARY_PAIRS = 1, TN_ROTARY_COUNT };

#endif
