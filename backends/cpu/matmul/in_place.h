/* Matrices that caches hold, few rows or columns of larger ones, and batches of them: nothing is packed. A is
 * read where it is; B too where its columns are together, else, when it is small, a panel of it at a time is packed: on
 * the stack, or where that is more than 16 KiB, in memory from the host. */
#ifndef TENON_BACKENDS_CPU_MATMUL_IN_PLACE_H
#define TENON_BACKENDS_CPU_MATMUL_IN_PLACE_H

#include "kernels.h"

/* Whether a product is better computed so. */
bool tni_mm_is_in_place(const tni_mm_product *product);

/* Of its tiles: most vectors of columns, and most rows of so many vectors. */
int64_t tni_mm_in_place_vectors(const tni_mm_kernels *kernels, const tni_mm_product *product);
int64_t tni_mm_in_place_rows(const tni_mm_kernels *kernels, const tni_mm_product *product,
                             int64_t vectors);

/* The last columns of a matrix of one chunk, whose sums are what goes to out, that are computed by themselves; 0:
 * none. */
int64_t tni_mm_in_place_last(const tni_mm_kernels *kernels, int64_t m, int64_t n, int64_t k,
                             int64_t a_step);

/* False when there is no memory for a panel. */
bool tni_mm_in_place_run(const tni_mm_kernels *kernels, const tni_mm_product *product,
                         const tn_run *run);

/* Computes an op that is small and uses nothing but strides of A, with the least that can be done before a
 * kernel is called; false for others. The op uses at most TNI_MM_PLAIN_USES. */
#define TNI_MM_PLAIN_USES (TN_MATMUL_USES_TRANSPOSE | TN_MATMUL_USES_STRIDES)
bool tni_mm_is_plain(const tn_op *op);
bool tni_mm_plain_run(const tni_mm_kernels *kernels, const tn_run *run);

#endif
