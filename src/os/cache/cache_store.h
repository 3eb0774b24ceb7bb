/* What a cache needs of the place where it keeps entries; cache.c uses nothing else. */
#ifndef TNI_OS_CACHE_STORE_H
#define TNI_OS_CACHE_STORE_H

#include "base/buffer.h"
#include "base/words.h"
#include "cache.h"
#include "os/sha256.h"

/* The bytes that an entry counts beside its data: the header that a folder keeps with it. */
enum { TNI_CACHE_HEADER = 88 };

/* What an entry is found by. The kind is a legal name, and so is good for a folder's. */
typedef struct tni_cache_id {
    char kind[TNI_NAME_MAX + 1];
    unsigned char digest[TNI_SHA256_SIZE];
    char hex[TNI_SHA256_HEX];
} tni_cache_id;

typedef struct tni_cache_store tni_cache_store;

/* As the calls of cache.h without their checks: an entry given to `put` fits the limit.
 * Thread-safety: Safe, but for `release`. */
typedef struct tni_cache_calls {
    void (*release)(tni_cache_store *store);
    tn_status (*put)(tni_cache_store *store, const tni_cache_id *id, const void *data, size_t size,
                     tn_error *err);
    tn_status (*get)(tni_cache_store *store, const tni_cache_id *id, void **out, size_t *out_size,
                     tn_error *err);
    tn_status (*remove)(tni_cache_store *store, const tni_cache_id *id, tn_error *err);
    tn_status (*prune)(tni_cache_store *store, uint64_t limit, tn_error *err);
    tn_status (*visit)(tni_cache_store *store, tni_cache_visit *visit, void *to, tn_error *err);
} tni_cache_calls;

/* Every store begins with this. */
struct tni_cache_store {
    const tni_cache_calls *calls;
};

/* NULL for want of memory. */
tni_cache_store *tni_cache_memory_create(uint64_t limit);

/* The system's own. NULL with a reason when the folder is not to be used, and NULL without one for
 * want of memory. */
tni_cache_store *tni_cache_folder_open(const char *path, uint64_t limit, tni_buffer *out_reason);

/* How far to go down when there is no room for `needed` bytes: to nine tenths of the limit with
 * them, so that not every put after it prunes again. */
static inline uint64_t tni_cache_target(uint64_t limit, uint64_t needed)
{
    uint64_t low = limit - limit / 10;
    return low > needed ? low - needed : 0;
}

static inline tn_status tni_cache_not_found(const tni_cache_id *id, tn_error *err)
{
    return tn_fail(err, TN_NOT_FOUND, 0, "cache get", "no %s with the key %.16s...", id->kind,
                   id->hex);
}

#endif
