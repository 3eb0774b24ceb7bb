/* Public functions of the cache directory: tenon/cache.h. */
#include "tenon/cache.h"

#include "base/alloc.h"
#include "base/words.h"
#include "cache.h"
#include "os/file.h"

#include <stdlib.h>

typedef struct row {
    tn_cache_kind shown;
    char name[TNI_NAME_MAX + 1];
} row;

struct tn_cache_list {
    char *folder;
    char *reason;
    row *rows;
    size_t count;
    size_t capacity;
    uint64_t written;
    bool failed; /* out of memory */
};

/* Opens the directory if it exists and can be used. Otherwise *out is NULL and `reason` says why;
 * it is empty if the directory has not been created yet. The caller releases `folder` and `reason`
 * in either case. */
static tn_status open_directory(tni_buffer *folder, tni_buffer *reason, tni_cache **out,
                                tn_error *err)
{
    const char *why = "";
    tni_file_id id;
    *out = NULL;
    bool wanted = tni_cache_default_folder(folder, &why);
    if (folder->failed)
        return tni_no_memory(err, "cache", "the folder's path");
    if (!wanted) {
        tni_buffer_add(reason, why);
        return TN_OK;
    }
    if (tni_file_identify(folder->text, &id, NULL) == TN_NOT_FOUND)
        return TN_OK;
    tn_status status = tni_cache_create(folder->text, TN_CACHE_LIMIT, out, err);
    if (!status && !tni_cache_folder(*out)) {
        tni_buffer_add(reason, tni_cache_reason(*out));
        tni_cache_release(*out);
        *out = NULL;
    }
    return status;
}

static row *add_row(tn_cache_list *list, const char *kind)
{
    if (!tni_array_reserve((void **)&list->rows, &list->capacity, list->count, list->count + 1,
                           sizeof *list->rows))
        return NULL;
    row *made = &list->rows[list->count++];
    *made = (row){.shown = {.struct_size = sizeof made->shown}};
    tn_text_fit(made->name, sizeof made->name, kind);
    return made;
}

static void count_entry(void *to, const char *kind, uint64_t bytes)
{
    tn_cache_list *list = to;
    row *found = NULL;
    for (size_t i = 0; i < list->count && !found; i++)
        found = strcmp(list->rows[i].name, kind) == 0 ? &list->rows[i] : NULL;
    if (!found)
        found = add_row(list, kind);
    if (!found) {
        list->failed = true;
        return;
    }
    found->shown.entries++;
    found->shown.bytes += bytes;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const row *)a)->name, ((const row *)b)->name);
}

static tn_status fill(tn_cache_list *list, tn_error *err)
{
    tni_buffer folder = {0}, reason = {0};
    tni_cache *cache = NULL;
    tn_status status = open_directory(&folder, &reason, &cache, err);
    if (!status && cache)
        status = tni_cache_visit_all(cache, count_entry, list, err);
    tni_cache_release(cache);
    if (!status) {
        list->folder = tni_buffer_detach(&folder);
        list->reason = tni_buffer_detach(&reason);
    }
    tni_buffer_release(&folder);
    tni_buffer_release(&reason);
    if (!status && (list->failed || !list->folder || !list->reason))
        status = tni_no_memory(err, "tn_cache_list_create", "a list");
    if (list->count > 0)
        qsort(list->rows, list->count, sizeof *list->rows, compare_names);
    for (size_t i = 0; i < list->count; i++)
        list->rows[i].shown.kind = list->rows[i].name;
    return status;
}

tn_status tn_cache_list_create(tn_cache_list **out, tn_error *err)
{
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_cache_list_create", "out is NULL");
    tn_cache_list *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return tni_no_memory(err, "tn_cache_list_create", "a list");
    made->written = tni_cache_written();
    tn_status status = fill(made, err);
    if (status)
        tn_cache_list_release(made);
    else
        *out = made;
    return status;
}

void tn_cache_list_release(tn_cache_list *list)
{
    if (!list)
        return;
    tni_release(list->folder);
    tni_release(list->reason);
    tni_release(list->rows);
    tni_release(list);
}

const char *tn_cache_list_folder(const tn_cache_list *list)
{
    return list ? list->folder : "";
}

const char *tn_cache_list_reason(const tn_cache_list *list)
{
    return list ? list->reason : "";
}

uint64_t tn_cache_list_written(const tn_cache_list *list)
{
    return list ? list->written : 0;
}

size_t tn_cache_list_count(const tn_cache_list *list)
{
    return list ? list->count : 0;
}

const tn_cache_kind *tn_cache_list_get(const tn_cache_list *list, size_t index)
{
    return list && index < list->count ? &list->rows[index].shown : NULL;
}

tn_status tn_cache_prune(uint64_t limit_bytes, tn_error *err)
{
    tni_buffer folder = {0}, reason = {0};
    tni_cache *cache = NULL;
    tn_status status = open_directory(&folder, &reason, &cache, err);
    if (!status && cache)
        status = tni_cache_prune(cache, limit_bytes, err);
    else if (!status && reason.length > 0)
        status = tn_fail(err, TN_UNAVAILABLE, 0, "tn_cache_prune",
                         "there is no cache directory: %s", tni_buffer_text(&reason));
    tni_cache_release(cache);
    tni_buffer_release(&folder);
    tni_buffer_release(&reason);
    return status;
}
