#include "cache.h"
#include "cache_store.h"

static const char only_memory[] =
    "on Windows entries are stored in memory only: Tenon cannot yet check that a folder is private "
    "to its owner";

tni_cache_store *tni_cache_folder_open(const char *path, uint64_t limit, tni_buffer *out_reason)
{
    (void)path;
    (void)limit;
    tni_buffer_add(out_reason, only_memory);
    return NULL;
}

bool tni_cache_default_folder(tni_buffer *out_folder, const char **out_reason)
{
    (void)out_folder;
    *out_reason = only_memory;
    return false;
}
