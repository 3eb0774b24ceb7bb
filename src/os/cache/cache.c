#include "cache.h"

#include "base/alloc.h"
#include "base/log.h"
#include "cache_store.h"
#include "tenon/cache.h"

#include <stdatomic.h>

static _Atomic uint64_t written;

struct tni_cache {
    tni_cache_store *store;
    uint64_t limit;
    char *folder; /* NULL for memory only */
    char *reason; /* NULL with a folder */
};

/* Uses memory instead of a folder. Takes ownership of the reason's text. */
static bool use_memory(tni_cache *cache, tni_buffer *reason)
{
    cache->store = tni_cache_memory_create(cache->limit);
    cache->reason = tni_buffer_detach(reason);
    return cache->store && cache->reason;
}

static bool use_folder(tni_cache *cache, const char *folder)
{
    tni_buffer reason = {0};
    bool done;
    cache->store = tni_cache_folder_open(folder, cache->limit, &reason);
    if (cache->store) {
        cache->folder = tni_text_copy(folder);
        done = cache->folder != NULL;
    } else {
        done = reason.length > 0 && use_memory(cache, &reason);
    }
    tni_buffer_release(&reason);
    return done;
}

tn_status tni_cache_create(const char *folder, uint64_t limit_bytes, tni_cache **out, tn_error *err)
{
    tni_cache *cache = tni_alloc_zeroed(1, sizeof *cache);
    tni_buffer reason = {0};
    bool done = false;
    if (cache) {
        cache->limit = limit_bytes;
        if (!folder)
            tni_buffer_add(&reason, "no cache folder was requested");
        done = folder ? use_folder(cache, folder) : use_memory(cache, &reason);
    }
    tni_buffer_release(&reason);
    if (!done) {
        tni_cache_release(cache);
        return tni_no_memory(err, "cache create", "a cache");
    }
    *out = cache;
    return TN_OK;
}

void tni_cache_release(tni_cache *cache)
{
    if (!cache)
        return;
    if (cache->store)
        cache->store->calls->release(cache->store);
    tni_release(cache->folder);
    tni_release(cache->reason);
    tni_release(cache);
}

const char *tni_cache_folder(const tni_cache *cache)
{
    return cache->folder;
}

const char *tni_cache_reason(const tni_cache *cache)
{
    return cache->reason ? cache->reason : "";
}

static tn_status identify(const char *kind, const void *key, size_t key_size, tni_cache_id *out,
                          tn_error *err)
{
    if (!tni_name_is_legal(kind, "", TNI_NAME_MAX))
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, "cache",
            "\"%s\" is not a valid kind of entry: expected 1 to %d lower-case letters, digits, "
            "'-' and '_'",
            kind, TNI_NAME_MAX);
    snprintf(out->kind, sizeof out->kind, "%s", kind);
    tni_sha256_of(key, key_size, out->digest);
    tni_sha256_hex(out->digest, out->hex);
    return TN_OK;
}

tn_status tni_cache_put(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                        const void *data, size_t size, tn_error *err)
{
    tni_cache_id id;
    tn_status status = identify(kind, key, key_size, &id, err);
    if (status)
        return status;
    if (cache->limit < TNI_CACHE_HEADER || size > cache->limit - TNI_CACHE_HEADER)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "cache put",
                       "a %s of %zu + %d bytes does not fit the cache's limit of %llu bytes", kind,
                       size, TNI_CACHE_HEADER, (unsigned long long)cache->limit);
    tn_error why;
    status = cache->store->calls->put(cache->store, &id, data, size, &why);
    if (status) {
        tni_log(TN_LOG_WARNING, "cache: a %s is not stored: %s", kind, why.message);
        if (err)
            *err = why;
    } else if (cache->folder) {
        atomic_fetch_add_explicit(&written, 1, memory_order_relaxed);
    }
    return status;
}

uint64_t tni_cache_written(void)
{
    return atomic_load_explicit(&written, memory_order_relaxed);
}

tn_status tni_cache_get(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                        void **out, size_t *out_size, tn_error *err)
{
    tni_cache_id id;
    tn_status status = identify(kind, key, key_size, &id, err);
    if (status)
        return status;
    return cache->store->calls->get(cache->store, &id, out, out_size, err);
}

tn_status tni_cache_remove(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                           tn_error *err)
{
    tni_cache_id id;
    tn_status status = identify(kind, key, key_size, &id, err);
    if (status)
        return status;
    return cache->store->calls->remove(cache->store, &id, err);
}

tn_status tni_cache_prune(tni_cache *cache, uint64_t limit_bytes, tn_error *err)
{
    return cache->store->calls->prune(cache->store, limit_bytes, err);
}

tn_status tni_cache_visit_all(tni_cache *cache, tni_cache_visit *visit, void *to, tn_error *err)
{
    return cache->store->calls->visit(cache->store, visit, to, err);
}

tni_cache *tni_cache_open_default(const char *what)
{
    tni_buffer folder = {0};
    tni_cache *cache = NULL;
    const char *reason;
    if (tni_cache_default_folder(&folder, &reason) && !folder.failed &&
        tni_cache_create(folder.text, TN_CACHE_LIMIT, &cache, NULL) == TN_OK && cache &&
        !tni_cache_folder(cache)) {
        tni_log(TN_LOG_WARNING, "%s not stored: %s", what, tni_cache_reason(cache));
        tni_cache_release(cache);
        cache = NULL;
    }
    tni_buffer_release(&folder);
    return cache;
}
