/* Counts the entries of a cache. */
#ifndef TENON_TEST_CACHE_COUNT_H
#define TENON_TEST_CACHE_COUNT_H

#include "os/cache/cache.h"

struct cache_totals {
    uint64_t entries;
    uint64_t bytes;
};

static inline void cache_add_entry_(void *to, const char *kind, uint64_t bytes)
{
    struct cache_totals *sum = to;
    (void)kind;
    sum->entries++;
    sum->bytes += bytes;
}

/* Number and size of all entries, valid or not; sizes are counted as for the limit. */
static inline tn_status cache_count(tni_cache *cache, uint64_t *out_entries, uint64_t *out_bytes,
                                    tn_error *err)
{
    struct cache_totals sum = {0};
    tn_status status = tni_cache_visit_all(cache, cache_add_entry_, &sum, err);
    if (!status) {
        *out_entries = sum.entries;
        *out_bytes = sum.bytes;
    }
    return status;
}

#endif
