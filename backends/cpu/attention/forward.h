/* attention by a set's kernels: who computes which rows, when keys are packed, and where what is between lies.
 *
 * Rows come out the same, to the bit, however many threads there are and whatever else is in the batch: where
 * blocks of keys begin depends on the sizes of rows alone, and where keys are split on how many there are. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_FORWARD_H
#define TENON_BACKENDS_CPU_ATTENTION_FORWARD_H

#include "kernels.h"

/* Bytes of scratch memory with so many threads. */
uint64_t tni_at_forward_workspace(const tni_at_set *set, const tn_op *op, int32_t threads);

/* TN_INVALID_ARGUMENT, before anything is written, for tables that do not fit. */
tn_status tni_at_forward(const tni_at_set *set, const tn_run *run, tn_error *err);

#endif
