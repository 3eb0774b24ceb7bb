/* attention of units with few rows, as in token-by-token decoding: keys and values are read once,
 * in place; many keys are split, and the states of the parts are merged in the order of keys. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SPLIT_H
#define TENON_BACKENDS_CPU_ATTENTION_SPLIT_H

#include "attention_kernels.h"

uint64_t tni_at_split_workspace(const tni_at_set *set, const tni_at_problem *problem);

/* Computes the units that are not packed (attention_layout.h). `block` is as in tni_at_layout. */
void tni_at_split(const tni_at_set *set, const tni_at_problem *problem, int64_t block);

#endif
