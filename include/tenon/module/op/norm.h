/* norm: normalizes along the last dimension, of `size`.
 *
 *     layer  (in - mean) / sqrt(variance + epsilon)
 *     rms    in / sqrt(mean of squares + epsilon)
 *
 * The result is multiplied by WEIGHT, then BIAS is added; both are optional and have in's shape,
 * with stride 0 in all dimensions except the last, and in's dtype or f32.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_NORM_H
#define TENON_MODULE_OP_NORM_H

#include "elementwise.h"

enum { TN_OP_NORM = 9 };

enum { TN_NORM_WEIGHT = 2, TN_NORM_BIAS = 3 };

/* Numbers are never reused. */
enum { TN_NORM_LAYER = 0, TN_NORM_RMS = 1, TN_NORM_COUNT };

#endif
