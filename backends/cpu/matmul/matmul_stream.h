/* Products of few rows with a large B, which is read from memory once. Each thread claims strips of
 * columns. It packs a strip one chunk of k at a time, into memory that stays in its own cache, and
 * multiplies the chunk by all rows of A, which are packed before. If B was packed beforehand (the
 * `pack` of a kernel row), a strip is read from there, sequentially.
 *
 * Sums are made in the order that matmul_panels.h states. */
#ifndef TENON_BACKENDS_CPU_MATMUL_STREAM_H
#define TENON_BACKENDS_CPU_MATMUL_STREAM_H

#include "matmul_panels.h"

/* Maximum rows. */
enum { TNI_MM_STREAM_ROWS = 64 };

/* Returns whether a product is of this kind. */
bool tni_mm_stream_suits(const tni_mm_set *set, const tni_mm_product *product);

/* Returns whether packing the op's B for many products has a benefit. `rows_least`: with fewer rows
 * the set reads more bytes from packed panels than from B itself. */
bool tni_mm_stream_packs(const tni_mm_set *set, const tni_mm_product *product, int64_t rows_least);

/* Bytes of workspace, and those if B is packed beforehand. */
uint64_t tni_mm_stream_workspace(const tni_mm_set *set, const tni_mm_product *product,
                                 int32_t threads);
uint64_t tni_mm_stream_packed_workspace(const tni_mm_set *set, const tni_mm_product *product,
                                        int32_t threads);

/* Computes the product, with run->workspace of that size. run->packed is NULL, or what
 * tni_mm_stream_pack wrote. Cannot fail. */
void tni_mm_stream_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run);

/* Bytes of the packed B, and packs it to `to`, which is aligned to 64 bytes. */
uint64_t tni_mm_stream_packed_bytes(const tni_mm_set *set, const tni_mm_product *product);
void tni_mm_stream_pack(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run,
                        char *to);

#endif
