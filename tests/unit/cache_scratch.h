/* A cache in a folder of a test's own, for the suites that look at its files. */
#ifndef TENON_TEST_CACHE_SCRATCH_H
#define TENON_TEST_CACHE_SCRATCH_H

#include "cache_count.h"
#include "scratch.h"

#include "base/alloc.h"
#include "os/cache/cache.h"
#include "os/sha256.h"
#include "os/sys.h"

#include <errno.h>

enum { HEADER = 88 }; /* what an entry counts beside its data */

static char scratch[SCRATCH_PATH];
static char folder[SCRATCH_PATH + 16]; /* not made by `begin` */

static inline void begin(void)
{
    scratch_make(scratch);
    snprintf(folder, sizeof folder, "%s/cache", scratch);
}

static inline void end(void)
{
    scratch_remove(scratch);
}

static inline tni_cache *create(const char *path, uint64_t limit)
{
    tni_cache *cache = NULL;
    assert_int_equal(tni_cache_create(path, limit, &cache, NULL), TN_OK);
    return cache;
}

/* A cache that must have its folder. */
static inline tni_cache *create_in_folder(uint64_t limit)
{
    tni_cache *cache = create(folder, limit);
    assert_string_equal(tni_cache_reason(cache), "");
    return cache;
}

static inline tn_status put(tni_cache *cache, const char *key, const char *data, tn_error *err)
{
    return tni_cache_put(cache, "test", key, strlen(key), data, strlen(data), err);
}

static inline tn_status get(tni_cache *cache, const char *key, tn_error *err)
{
    void *data = NULL;
    size_t size;
    tn_status status = tni_cache_get(cache, "test", key, strlen(key), &data, &size, err);
    tni_release(data);
    return status;
}

/* The file of an entry of kind "test". */
static inline const char *file_of(const char *key)
{
    static char path[sizeof folder + 80];
    unsigned char digest[TNI_SHA256_SIZE];
    char hex[TNI_SHA256_HEX];
    tni_sha256_of(key, strlen(key), digest);
    tni_sha256_hex(digest, hex);
    snprintf(path, sizeof path, "%s/test/%.2s/%s", folder, hex, hex + 2);
    return path;
}

static inline bool exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

static const char *fault_call;
static int fault_code;

static inline bool fault_named(const char *call)
{
    errno = fault_code;
    return strcmp(call, fault_call) == 0;
}

/* Makes every system call of this name fail, until `call` is NULL. */
static inline void fail_calls(const char *call, int code)
{
    fault_call = call;
    fault_code = code;
    tni_sys_fault_set(call ? fault_named : NULL);
}

#endif
