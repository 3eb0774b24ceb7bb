/* Small problems that kernels are tested with before their first use: odd sizes, even ones, and each thing
 * that an op can ask for at least once. */
#ifndef TNI_DISPATCH_SMOKE_H
#define TNI_DISPATCH_SMOKE_H

#include "ops/op.h"

/* How many there are of an op, for each dtype. */
size_t tni_smoke_count(int32_t op);

/* One of them, settled; false where the op has no such thing for the dtype. */
bool tni_smoke_make(int32_t op, size_t index, tn_dtype dtype, tn_op *out);

#endif
