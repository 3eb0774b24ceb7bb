/* All operators, for programs and modules that handle several. A kernel includes the header of its
 * own operator, which is enough.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OPS_H
#define TENON_MODULE_OPS_H

#include "op/attention.h"
#include "op/attention_backward.h"
#include "op/attention_merge.h"
#include "op/binary.h"
#include "op/cast.h"
#include "op/elementwise.h"
#include "op/fill.h"
#include "op/matmul.h"
#include "op/norm.h"
#include "op/permute.h"
#include "op/reduce.h"
#include "op/rotary.h"
#include "op/softmax.h"
#include "op/unary.h"

#endif
