/* attention-backward with the kernels of a set. Blocks of keys are combined with blocks of rows in
 * rounds: in each round, a block of rows is combined with at most one block of keys, which depends
 * only on the round. So the order of summation of dq does not depend on the number of threads, and
 * nothing is computed twice. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_BACKWARD_PASS_H
#define TENON_BACKENDS_CPU_ATTENTION_BACKWARD_PASS_H

#include "attention_backward_kernels.h"

/* Bytes of workspace for this number of threads. */
uint64_t tni_at_backward_workspace(const tni_at_back_set *set, const tn_op *op, int32_t threads);

void tni_at_backward(const tni_at_back_set *set, const tn_run *run);

#endif
