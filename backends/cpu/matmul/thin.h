/* Products of few rows with a large matrix, which is read once: as fast as memory gives it.
 *
 * Each chunk of k is summed by itself, so that chunks are shared out to threads as well as columns are;
 * then the chunks' sums are added in order. */
#ifndef TENON_BACKENDS_CPU_MATMUL_THIN_H
#define TENON_BACKENDS_CPU_MATMUL_THIN_H

#include "kernels.h"

/* Whether a product is so, and not better computed in place. Turns it if it is, so that A has few rows. */
bool tni_mm_is_thin(tni_mm_product *product);

uint64_t tni_mm_thin_workspace(const tni_mm_product *product);

void tni_mm_thin_run(const tni_mm_kernels *kernels, const tni_mm_product *product,
                     const tn_run *run);

#endif
