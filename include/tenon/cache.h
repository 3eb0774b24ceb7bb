/* The cache directory: results that Tenon keeps for later processes: verdicts on modules and
 * kernels, timings, compiled code. The directory is $TENON_CACHE, else $XDG_CACHE_HOME/tenon, else
 * $HOME/.cache/tenon. If none of these can be used, results are kept in memory only. The contents
 * may be deleted at any time.
 *
 * Thread-safety: Safe, also between processes; a list is constant once created. */
#ifndef TENON_CACHE_H
#define TENON_CACHE_H

#include "base.h"

TN_BEGIN_DECLS

/* Size limit of the directory in bytes. Above it, the least recently used entries are evicted. */
#define TN_CACHE_LIMIT (UINT64_C(256) << 20)

/* Totals of one kind of entry. */
typedef struct tn_cache_kind {
    size_t struct_size;
    const char *kind; /* "verdict", "tuning"; valid as long as the list */
    uint64_t entries;
    uint64_t bytes;
} tn_cache_kind;
TN_ENDS_WITH(tn_cache_kind, bytes);

typedef struct tn_cache_list tn_cache_list;

/* Lists the current contents of the directory by kind. Does not create the directory. The caller
 * must release the list. */
TN_API tn_status tn_cache_list_create(tn_cache_list **out, tn_error *err);
TN_API void tn_cache_list_release(tn_cache_list *list); /* accepts NULL */

/* _folder returns the directory, or "" if none exists. _reason returns why nothing is stored
 * there, or "" if entries are or would be stored. */
TN_API const char *tn_cache_list_folder(const tn_cache_list *list);
TN_API const char *tn_cache_list_reason(const tn_cache_list *list);

/* Number of entries that this process had written to a cache directory when the list was created,
 * including overwritten ones. 0 for a NULL list. */
TN_API uint64_t tn_cache_list_written(const tn_cache_list *list);

/* Sorted by name; NULL past the end. */
TN_API size_t tn_cache_list_count(const tn_cache_list *list);
TN_API const tn_cache_kind *tn_cache_list_get(const tn_cache_list *list, size_t index);

/* Evicts entries, least recently used first, until at most `limit_bytes` remain; 0 removes all.
 * Returns TN_OK if the directory does not exist yet. Fails with TN_UNAVAILABLE, and the reason, if
 * no directory can be used. */
TN_API tn_status tn_cache_prune(uint64_t limit_bytes, tn_error *err);

TN_END_DECLS

#endif
