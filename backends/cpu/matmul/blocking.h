/* How a large product is cut into parts. Nothing here decides in which order a sum is made: cuts follow
 * the caches and the threads without changing a bit of a result. */
#ifndef TENON_BACKENDS_CPU_MATMUL_BLOCKING_H
#define TENON_BACKENDS_CPU_MATMUL_BLOCKING_H

#include "packed.h"

/* What is packed at once: a slab of out, for all of k, or else for a number of chunks of it. */
typedef struct tni_mm_slab {
    int64_t rows, columns;    /* of out, at most                                        */
    int64_t chunks;           /* of k, at most                                          */
    bool deep;                /* all of them                                            */
    int64_t a_panel, b_panel; /* bytes of a panel of one chunk                          */
    int64_t a_chunk, b_chunk; /* bytes of all panels of one chunk                       */
    bool apart;               /* unfinished sums are not kept in out                    */
    int64_t sums;             /* bytes for them: of blocks under way, or of the slab    */
    int64_t bytes;            /* of scratch memory                                      */
} tni_mm_slab;

/* Whether unfinished sums cannot be kept in out: it is of another dtype, or its own elements are still needed. */
bool tni_mm_sums_apart(const tni_mm_set *set, const tni_mm_product *product);

void tni_mm_slab_make(const tni_mm_set *set, const tni_mm_product *product, int32_t threads,
                      tni_mm_slab *out);

/* What one task computes of a slab at a time: blocks of that many rows and columns, multiples of the tile's.
 * A block's panels of B stay in a core's own cache of `cache` bytes, in a deep slab all that is used of it. */
typedef struct tni_mm_cut {
    int64_t rows, columns;
    int64_t down, across; /* blocks of the slab */
} tni_mm_cut;

void tni_mm_cut_make(const tni_mm_set *set, const tni_mm_slab *slab, int64_t rows, int64_t columns,
                     int64_t depth, int32_t threads, int64_t cache, tni_mm_cut *out);

/* Bytes of a core's own cache, as the host has found it; once it was asked, as cheap as reading a
 * number. */
int64_t tni_mm_cache(const tn_host *host);

#endif
