/* permute: out = in, of the same dtype; in's dimensions are already in out's order.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_PERMUTE_H
#define TENON_MODULE_OP_PERMUTE_H

#include "elementwise.h"

enum { TN_OP_PERMUTE = 2 };

#endif
