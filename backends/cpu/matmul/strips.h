/* Large products on several threads. Groups of threads share the columns of B. Each thread packs those of its group
 * for itself, a chunk of k at a time, which then stay in its own cache; whoever of the group is ready takes the next
 * strips of A's rows, packs them and multiplies, and helps another group when none is left. So no thread reads what
 * another has just written, and one that the machine slows down takes fewer strips.
 *
 * Sums are made in the order that packed.h states. */
#ifndef TENON_BACKENDS_CPU_MATMUL_STRIPS_H
#define TENON_BACKENDS_CPU_MATMUL_STRIPS_H

#include "packed.h"

/* Whether that is faster than packing together: sums can be kept in out, and there is enough to multiply that B may
 * be packed several times. */
bool tni_mm_strips_suit(const tni_mm_set *set, const tni_mm_product *product, int32_t threads);

/* Bytes of scratch memory that each thread needs. */
int64_t tni_mm_strips_bytes(const tni_mm_set *set, const tni_mm_product *product, int32_t threads);

/* Multiplies one matrix with scratch memory `room` of that many bytes for each thread. Cannot fail. */
void tni_mm_strips_run(const tni_mm_set *set, const tni_mm_product *product,
                       const tni_mm_matrix *at, const tni_mm_finish *finish, const tn_host *host,
                       int32_t threads, char *room);

#endif
