/* Interface of the storage behind a cache: a folder or memory. cache.c uses nothing else. */
#ifndef TNI_OS_CACHE_STORE_H
#define TNI_OS_CACHE_STORE_H

#include "base/buffer.h"
#include "base/words.h"
#include "cache.h"
#include "os/sha256.h"

/* Bytes that an entry counts besides its data: the size of the header in an entry's file. */
enum { TNI_CACHE_HEADER = 88 };

/* Identifies an entry. The kind is a legal name, so it is also valid as a folder's name. */
typedef struct tni_cache_id {
    char kind[TNI_NAME_MAX + 1];
    unsigned char digest[TNI_SHA256_SIZE];
    char hex[TNI_SHA256_HEX];
} tni_cache_id;

typedef struct tni_cache_store tni_cache_store;

/* As the functions of cache.h without their checks: an entry given to `put` fits the limit.
 * Thread-safety: Safe, except `release`. */
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

/* First member of every store. */
struct tni_cache_store {
    const tni_cache_calls *calls;
};

/* Returns NULL if out of memory. */
tni_cache_store *tni_cache_memory_create(uint64_t limit);

/* Implemented per operating system. Returns NULL with a reason if the folder cannot be used, NULL
 * without a reason if out of memory. */
tni_cache_store *tni_cache_folder_open(const char *path, uint64_t limit, tni_buffer *out_reason);

/* Size to prune to if there is no room for `needed` bytes: 90 % of the limit including them, so
 * that not every later put prunes again. */
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
