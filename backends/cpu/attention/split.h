/* attention of units with few rows, as when one token after the other is made: keys and values are read where
 * they are, once; many keys are split, and what rows come to over each part is merged in the order of keys. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SPLIT_H
#define TENON_BACKENDS_CPU_ATTENTION_SPLIT_H

#include "kernels.h"

uint64_t tni_at_split_workspace(const tni_at_set *set, const tni_at_problem *problem);

/* Computes the units that are not packed (layout.h). `block` is as in a layout. */
void tni_at_split(const tni_at_set *set, const tni_at_problem *problem, int64_t block);

#endif
