/* Cache and thread blocking of large products. Nothing here decides the order of summation: the
 * blocking depends on caches and threads without changing a bit of the result. */
#ifndef TENON_BACKENDS_CPU_MATMUL_BLOCKING_H
#define TENON_BACKENDS_CPU_MATMUL_BLOCKING_H

#include "matmul_panels.h"

/* The part that is packed at once: a slab of out, for all of k or for a number of chunks of k. */
typedef struct tni_mm_slab {
    int64_t rows, columns;    /* of out, maximum */
    int64_t chunks;           /* of k, maximum */
    bool deep;                /* packs all chunks of k */
    int64_t a_panel, b_panel; /* bytes of a panel of one chunk */
    int64_t a_chunk, b_chunk; /* bytes of all panels of one chunk */
    bool apart;               /* partial sums are not kept in out */
    int64_t sums;             /* bytes of these accumulators: of active blocks, or of the slab */
    int64_t bytes;            /* of workspace */
} tni_mm_slab;

/* Returns whether partial sums cannot be kept in out: out has another dtype, or its old elements
 * are still needed. */
bool tni_mm_needs_accumulator(const tni_mm_set *set, const tni_mm_product *product);

void tni_gemm_panel_layout(const tni_mm_set *set, const tni_mm_product *product, int32_t threads,
                           tni_mm_slab *out);

/* Blocks of a slab, each computed by one task at a time; rows and columns are multiples of the
 * tile's. The panels of B of a block stay in a core's own cache of `cache` bytes; in a deep slab,
 * everything that the block uses does. */
typedef struct tni_mm_cut {
    int64_t rows, columns;
    int64_t down, across; /* number of blocks in the slab */
} tni_mm_cut;

void tni_mm_cut_make(const tni_mm_set *set, const tni_mm_slab *slab, int64_t rows, int64_t columns,
                     int64_t depth, int32_t threads, int64_t cache, tni_mm_cut *out);

/* Bytes of a core's own cache, as reported by the host. Cached: cheap after the first call. */
int64_t tni_mm_cache(const tn_host *host);

#endif
