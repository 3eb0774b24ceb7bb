/* cast: out = in, converted to another dtype.
 *
 * To floats: rounds to nearest even. To integers: truncates towards zero; out-of-range values
 * saturate, NaN becomes 0. To bool: true for nonzero, in either part of a complex number. Otherwise
 * a complex number becomes its real part.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_CAST_H
#define TENON_MODULE_OP_CAST_H

#include "elementwise.h"

enum { TN_OP_CAST = 3 };

#endif
