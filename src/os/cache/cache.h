/* The cache directory for compiled code, tuning results and verdicts. Content-addressed, bounded
 * and private to its owner. If no folder can be used, it keeps entries in memory and reports why.
 * Thread-safety: Safe, also between processes. */
#ifndef TNI_OS_CACHE_H
#define TNI_OS_CACHE_H

#include "base/buffer.h"

typedef struct tni_cache tni_cache;

/* `folder` NULL: memory only. Fails only if out of memory. If the folder cannot be created, belongs
 * to another user, is accessible to others, is a symbolic link in its last component, or cannot be
 * written, the cache uses memory only and records the reason. Missing parent folders are created
 * too, all with access for the owner only. */
tn_status tni_cache_create(const char *folder, uint64_t limit_bytes, tni_cache **out,
                           tn_error *err);
void tni_cache_release(tni_cache *cache);

/* The folder of the entries, or NULL for memory only; then tni_cache_reason returns why and the
 * remedy. */
const char *tni_cache_folder(const tni_cache *cache);
const char *tni_cache_reason(const tni_cache *cache); /* "" with a folder */

/* An entry is identified by `kind` (a legal name: "verdict", "cubin") and the SHA-256 of `key`. A
 * put replaces an existing entry; if the limit is exceeded, the least recently used entries are
 * removed. An entry counts its size plus 88 bytes; an entry larger than the limit fails with
 * TN_INVALID_ARGUMENT. Fails with TN_IO if the folder cannot be written (disk full, now read-only,
 * removed): existing entries stay, no partial file is left, and the caller decides what to do.
 *
 * Entries put by other processes are counted only from time to time, so if several processes write
 * at once the folder can exceed the limit until one of them counts again. */
tn_status tni_cache_put(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                        const void *data, size_t size, tn_error *err);

/* Number of successful puts into a folder by this process. */
uint64_t tni_cache_written(void);

/* Returns a copy: release it with tni_release. Fails with TN_NOT_FOUND if there is no entry; a
 * truncated or modified entry is removed and also gives TN_NOT_FOUND. Fails with TN_IO if the
 * system cannot read the entry. */
tn_status tni_cache_get(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                        void **out, size_t *out_size, tn_error *err);

/* Removes an entry. Returns TN_OK also if it did not exist. */
tn_status tni_cache_remove(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                           tn_error *err);

/* Removes entries, least recently used first, until at most `limit_bytes` remain; 0 removes all.
 * Also removes temporary files of crashed writers that are older than an hour. */
tn_status tni_cache_prune(tni_cache *cache, uint64_t limit_bytes, tn_error *err);

/* Calls `visit` for each entry, valid or not; `bytes` is counted as for the limit. A lock may be
 * held during the call: `visit` must not call cache functions. */
typedef void tni_cache_visit(void *to, const char *kind, uint64_t bytes);
tn_status tni_cache_visit_all(tni_cache *cache, tni_cache_visit *visit, void *to, tn_error *err);

/* The folder that the environment selects: $TENON_CACHE, else $XDG_CACHE_HOME/tenon, else
 * $HOME/.cache/tenon. An empty or relative $TENON_CACHE means memory only; the other two are
 * ignored unless they are absolute paths. If no folder is selected or the process is privileged,
 * returns false, sets *out_reason to static text and leaves *out_folder unchanged. */
bool tni_cache_default_folder(tni_buffer *out_folder, const char **out_reason);

/* Opens the cache of that folder with the limit TN_CACHE_LIMIT. Returns NULL if nothing can be kept
 * beyond the process; if a folder was selected but cannot be used, logs "`what` not kept: ...". The
 * caller releases the cache. */
tni_cache *tni_cache_open_default(const char *what);

#endif
