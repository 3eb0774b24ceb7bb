/* attention-backward by a set's kernels. Blocks of keys meet blocks of rows in rounds: in each, a block of rows
 * meets one block of keys at most, and which one depends on the round alone. So dq is summed in the same order
 * however many threads there are, and nothing is computed twice. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_BACKWARD_H
#define TENON_BACKENDS_CPU_ATTENTION_BACKWARD_H

#include "backward_kernels.h"

/* Bytes of scratch memory with so many threads. */
uint64_t tni_at_backward_workspace(const tni_at_back_set *set, const tn_op *op, int32_t threads);

void tni_at_backward(const tni_at_back_set *set, const tn_run *run);

#endif
