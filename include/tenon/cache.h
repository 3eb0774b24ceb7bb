/* The cache directory: what Tenon keeps between processes, so that the next one need not find it out again:
 * verdicts on modules and kernels, times, compiled code. It is $TENON_CACHE, else $XDG_CACHE_HOME/tenon,
 * else $HOME/.cache/tenon; where none can be had, everything is kept in memory alone. Whatever is in it may
 * go at any time.
 *
 * Thread-safety: Safe, also between processes; a list is constant once made. */
#ifndef TENON_CACHE_H
#define TENON_CACHE_H

#include "base.h"

TN_BEGIN_DECLS

/* What the directory is held to, in bytes: beyond it the least recently used goes. */
#define TN_CACHE_LIMIT (UINT64_C(256) << 20)

/* What there is of one kind. */
typedef struct tn_cache_kind {
    size_t struct_size;
    const char *kind; /* "verdict", "tuning"; lent as long as the list */
    uint64_t entries;
    uint64_t bytes;
} tn_cache_kind;
TN_ENDS_WITH(tn_cache_kind, bytes);

typedef struct tn_cache_list tn_cache_list;

/* What is in the directory now, by kind. Makes no directory. The caller releases the list. */
TN_API tn_status tn_cache_list_create(tn_cache_list **out, tn_error *err);
TN_API void tn_cache_list_release(tn_cache_list *list); /* accepts NULL */

/* The directory, "" for none; and why nothing is kept there, "" when something is or would be. */
TN_API const char *tn_cache_list_folder(const tn_cache_list *list);
TN_API const char *tn_cache_list_reason(const tn_cache_list *list);

/* How many entries this process had written to a cache directory when the list was made, entries
 * that it replaced included; 0 for a NULL list. */
TN_API uint64_t tn_cache_list_written(const tn_cache_list *list);

/* In the order of their names; NULL past the end. */
TN_API size_t tn_cache_list_count(const tn_cache_list *list);
TN_API const tn_cache_kind *tn_cache_list_get(const tn_cache_list *list, size_t index);

/* Drops entries, least recently used first, until at most `limit_bytes` remain; 0 clears. TN_OK when there
 * is no directory yet, TN_UNAVAILABLE with the reason when there is none to be had. */
TN_API tn_status tn_cache_prune(uint64_t limit_bytes, tn_error *err);

TN_END_DECLS

#endif
