/* Small problems that test kernels before their first use: odd sizes, even sizes, and each feature
 * of an op at least once. */
#ifndef TNI_POLICY_ADMISSION_SMOKE_H
#define TNI_POLICY_ADMISSION_SMOKE_H

#include "op/op.h"

/* Returns the number of problems of an op, for each dtype. */
size_t tni_smoke_count(int32_t op);

/* Makes one of them, validated; returns false if the op has no such problem for the dtype. */
bool tni_smoke_make(int32_t op, size_t index, tn_dtype dtype, tn_op *out);

#endif
