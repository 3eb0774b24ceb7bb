/* Products of few rows with a large matrix, which is read once, at the speed of memory.
 *
 * Each chunk of k is summed separately, so that both chunks and columns are distributed to threads;
 * then the sums of the chunks are added in order. */
#ifndef TENON_BACKENDS_CPU_MATMUL_THIN_H
#define TENON_BACKENDS_CPU_MATMUL_THIN_H

#include "matmul_kernels.h"

/* Returns whether a product is of this kind and not faster in place. If so, transposes it if
 * needed, so that A has few rows. */
bool tni_mm_is_thin(tni_mm_product *product);

uint64_t tni_mm_thin_workspace(const tni_mm_product *product);

void tni_mm_thin_run(const tni_mm_kernels *kernels, const tni_mm_product *product,
                     const tn_run *run);

#endif
