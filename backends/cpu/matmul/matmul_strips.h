/* Large products on several threads. Groups of threads share the columns of B. Each thread packs
 * the columns of its group for itself, one chunk of k at a time, so that they stay in its own
 * cache. A thread that is ready claims the next strips of A's rows, packs and multiplies them, and
 * helps another group when none is left. So no thread reads data that another has just written, and
 * a thread that is slowed down takes fewer strips.
 *
 * Sums are made in the order that matmul_panels.h states. */
#ifndef TENON_BACKENDS_CPU_MATMUL_STRIPS_H
#define TENON_BACKENDS_CPU_MATMUL_STRIPS_H

#include "matmul_panels.h"

/* Returns whether this is faster than shared packing: sums can be kept in out, and there are enough
 * products to justify packing B several times. */
bool tni_mm_strips_suit(const tni_mm_set *set, const tni_mm_product *product, int32_t threads);

/* Bytes of workspace that each thread needs. */
int64_t tni_mm_strips_bytes(const tni_mm_set *set, const tni_mm_product *product, int32_t threads);

/* Multiplies one matrix; `room` is workspace of that many bytes for each thread. Cannot fail. */
void tni_mm_strips_run(const tni_mm_set *set, const tni_mm_product *product,
                       const tni_mm_matrix *at, const tni_mm_finish *finish, const tn_host *host,
                       int32_t threads, char *room);

#endif
