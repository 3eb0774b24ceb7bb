/* Tensors that are released when their case ends.
 * Thread-safety: as the trial they belong to. */
#ifndef TENON_CLI_CONFORMANCE_TENSORS_H
#define TENON_CLI_CONFORMANCE_TENSORS_H

#include "trial.h"

/* Zeroed, to be filled by the case, which may also release it. */
bool tensor_empty(trial *t, tn_tensor **out);

bool tensor_make(trial *t, tn_device *device, tn_dtype dtype, const int64_t *shape, int32_t ndim,
                 tn_tensor **out);

/* Over memory that the trial owns; strides NULL: contiguous. */
bool tensor_over(trial *t, tn_device *device, void *data, tn_dtype dtype, const int64_t *shape,
                 const int64_t *strides, int32_t ndim, tn_tensor **out);

#endif
