/* softmax: exp(in - max) / sum along the last dimension; with the bit LOG, its logarithm.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_SOFTMAX_H
#define TENON_MODULE_OP_SOFTMAX_H

#include "elementwise.h"

enum { TN_OP_SOFTMAX = 8 };

#endif
