/* Matrices that fit in the caches, larger ones with few rows or columns, and batches of them. A is
 * read in place. B is read in place if its rows are contiguous; else, if it is small, one panel at
 * a time is packed: on the stack, or, above 16 KiB, in memory from the host. */
#ifndef TENON_BACKENDS_CPU_MATMUL_IN_PLACE_H
#define TENON_BACKENDS_CPU_MATMUL_IN_PLACE_H

#include "matmul_kernels.h"

#include "tenon/module/op/matmul.h"

/* Returns whether computing in place is faster for a product. */
bool tni_mm_is_in_place(const tni_mm_product *product);

/* Of its tiles: maximum vectors of columns, and maximum rows of a tile with `vectors` vectors. */
int64_t tni_mm_in_place_vectors(const tni_mm_kernels *kernels, const tni_mm_product *product);
int64_t tni_mm_in_place_rows(const tni_mm_kernels *kernels, const tni_mm_product *product,
                             int64_t vectors);

/* Number of last columns that are computed separately, for a matrix of one chunk whose sums are
 * written to out unchanged; 0 for none. */
int64_t tni_mm_in_place_last(const tni_mm_kernels *kernels, int64_t m, int64_t n, int64_t k,
                             int64_t a_step);

/* Returns false if allocating a panel failed. */
bool tni_mm_in_place_run(const tni_mm_kernels *kernels, const tni_mm_product *product,
                         const tn_run *run);

/* Computes a small op with the least work before the kernel is called; returns false, without
 * computing, for any other op. The op may use only TNI_MM_PLAIN_USES. */
#define TNI_MM_PLAIN_USES (TN_MATMUL_USES_TRANSPOSE | TN_MATMUL_USES_STRIDES)
bool tni_mm_is_plain(const tn_op *op);
bool tni_mm_plain_run(const tni_mm_kernels *kernels, const tn_run *run);

#endif
