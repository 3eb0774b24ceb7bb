/* fill: out = value; there is no IN.
 *
 * elementwise.h has the operands, USES bits and parameters.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_FILL_H
#define TENON_MODULE_OP_FILL_H

#include "elementwise.h"

enum { TN_OP_FILL = 4 };

#endif
