#include "host.h"

#include "base/alloc.h"
#include "base/log.h"
#include "os/bind.h"
#include "os/cache/cache.h"
#include "os/look/look.h"
#include "os/machine/machine.h"
#include "os/parallel.h"
#include "os/thread.h"
#include "tenon/module/library.h"

static void *host_alloc(void *self, size_t size, size_t align)
{
    tni_record *record = self;
    bool sound = align != 0 && !(align & (align - 1));
    void *memory = sound ? tni_alloc_aligned(size, align) : NULL;
    if (sound && !memory)
        record->starved = true;
    return memory;
}

static void host_release(void *self, void *memory)
{
    (void)self;
    tni_release(memory);
}

static void host_log(void *self, int32_t level, const char *text)
{
    const tni_record *record = self;
    if (text && level > TN_LOG_OFF)
        tni_log(level, "module %s: %s", record->name, text);
}

/* Returns the remedy of the module's library row with the same `files`, or NULL. */
static const char *remedy_for(const tni_record *record, const char *files)
{
    const tn_library_row *const *rows = record->table ? record->table->libraries : NULL;
    for (; rows && *rows; rows++) {
        if (files && (*rows)->files && strcmp((*rows)->files, files) == 0)
            return (*rows)->remedy;
    }
    return NULL;
}

/* Stores the remedy separately from the reason: reports have a separate field for it. */
static void note_lacking(tni_record *record, const char *files)
{
    const char *remedy = remedy_for(record, files);
    record->helps_own = remedy != NULL;
    if (remedy)
        tn_text_fit(record->helps, sizeof record->helps, remedy);
    else
        tni_bind_remedy(files, record->helps, sizeof record->helps);
}

static bool is_probing(const tni_record *record)
{
    return atomic_load(&record->prober) == tni_thread_id();
}

static tn_status host_library_bind(void *self, const char *files, const tn_symbol *symbols,
                                   size_t count, void *table, tn_error *err)
{
    tni_record *record = self;
    char *file = NULL;
    tn_status status = tni_bind(files, symbols, count, NULL, table, &file, err);
    if (status == TN_UNAVAILABLE && is_probing(record))
        note_lacking(record, files);
    if (!status)
        tni_log(TN_LOG_INFO, "module %s: opened %s", record->name, file ? file : files);
    if (status == TN_OUT_OF_MEMORY || status == TN_BUSY)
        record->starved = true;
    tni_release(file);
    return status;
}

static void host_parallel_for(void *self, int64_t count, tn_task *task, void *user)
{
    (void)self;
    tni_parallel_for(count, task, user);
}

static tn_status host_machine(void *self, tn_machine_facts *out, tn_error *err)
{
    (void)self;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "host", "out is NULL");
    return tni_machine_facts_read(out, err);
}

static tn_status host_cache_get(void *self, const char *kind, const void *key, size_t key_size,
                                void **out, size_t *out_size, tn_error *err)
{
    (void)self;
    tni_cache *cache = tni_cache_open_default("compiled code");
    tn_status status = cache ? tni_cache_get(cache, kind, key, key_size, out, out_size, err)
                             : tn_fail(err, TN_NOT_FOUND, 0, "cache", "nothing is stored");
    tni_cache_release(cache);
    return status;
}

static tn_status host_cache_put(void *self, const char *kind, const void *key, size_t key_size,
                                const void *data, size_t size, tn_error *err)
{
    (void)self;
    tni_cache *cache = tni_cache_open_default("compiled code");
    tn_status status =
        cache ? tni_cache_put(cache, kind, key, key_size, data, size, err)
              : tn_fail(err, TN_UNAVAILABLE, 0, "cache", "there is no cache directory");
    tni_cache_release(cache);
    return status;
}

static tn_status host_library_look(void *self, const char *files, char *out_path, size_t size,
                                   int32_t *out_is_here, tn_error *err)
{
    tni_look look;
    (void)self;
    if (!files || !files[0] || !out_path || size == 0 || !out_is_here)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "library_look", "%s is missing",
                       !files || !files[0] ? "the file's name" : "a buffer for the result");
    const bool is_here = tni_look_loaded(files, &look);
    if (look.holds <= 0)
        return tn_fail(err, TN_NOT_FOUND, 0, "library_look", "%.100s: %s", files, look.text);
    tn_text_fit(out_path, size, look.text);
    *out_is_here = is_here;
    return TN_OK;
}

static void set_remedy(void *self, const char *text)
{
    tni_record *record = self;
    if (!is_probing(record))
        return;
    tn_text_fit(record->helps, sizeof record->helps, text ? text : "");
    record->helps_own = true;
}

void tni_host_fill(tni_record *record)
{
    record->host = (tn_host){
        .struct_size = sizeof record->host,
        .abi_major = TN_MODULE_ABI_MAJOR,
        .abi_minor = TN_MODULE_ABI_MINOR,
        .self = record,
        .alloc = host_alloc,
        .release = host_release,
        .log = host_log,
        .library_bind = host_library_bind,
        .parallel_for = host_parallel_for,
        .machine = host_machine,
        .cache_get = host_cache_get,
        .cache_put = host_cache_put,
        .library_look = host_library_look,
        .remedy_tell = set_remedy,
    };
}
