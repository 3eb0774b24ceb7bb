/* The host's table for suites that have the module's own objects in them, with a cache in memory. */
#ifndef TESTS_CUDA_MODULE_HOST_H
#define TESTS_CUDA_MODULE_HOST_H

#include "base/alloc.h"
#include "os/bind.h"
#include "os/cache/cache.h"
#include "tenon/module/module.h"

#include <stdio.h>
#include <string.h>

static int compiled; /* what was put into the cache */
static char said[2048];

static void *take(void *self, size_t size, size_t align)
{
    (void)self;
    return tni_alloc_aligned(size, align);
}

static void give(void *self, void *memory)
{
    (void)self;
    tni_release(memory);
}

static void note(void *self, int32_t level, const char *text)
{
    (void)self, (void)level;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static tn_status bind(void *self, const char *files, const tn_symbol *symbols, size_t count,
                      void *table, tn_error *err)
{
    (void)self;
    return tni_bind(files, symbols, count, NULL, table, NULL, err);
}

static tn_status get(void *self, const char *kind, const void *key, size_t key_size, void **out,
                     size_t *out_size, tn_error *err)
{
    return tni_cache_get(self, kind, key, key_size, out, out_size, err);
}

static tn_status put(void *self, const char *kind, const void *key, size_t key_size,
                     const void *data, size_t size, tn_error *err)
{
    compiled++;
    return tni_cache_put(self, kind, key, key_size, data, size, err);
}

static tn_host host = {
    .struct_size = offsetof(tn_host, library_look),
    .abi_major = TN_MODULE_ABI_MAJOR,
    .abi_minor = TN_MODULE_ABI_MINOR,
    .alloc = take,
    .release = give,
    .log = note,
    .library_bind = bind,
    .cache_get = get,
    .cache_put = put,
};

#endif
