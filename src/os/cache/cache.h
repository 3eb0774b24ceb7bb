/* The one cache directory: compiled code, tuning, verdicts. Content-addressed, bounded, private to
 * its owner, and never in the way: where there is no folder to be had it keeps things in memory
 * and says why. Thread-safety: Safe, also between processes. */
#ifndef TNI_OS_CACHE_H
#define TNI_OS_CACHE_H

#include "base/buffer.h"

typedef struct tni_cache tni_cache;

/* `folder` NULL: memory only. Fails only for want of memory: a folder that cannot be made, is not
 * ours, is open to others, is reached by a symbolic link as its last step, or cannot be written
 * means memory only, with the reason. Folders on the way that are missing are made too, all of
 * them for the owner alone. */
tn_status tni_cache_create(const char *folder, uint64_t limit_bytes, tni_cache **out,
                           tn_error *err);
void tni_cache_release(tni_cache *cache);

/* Where it keeps things, or NULL for memory only; then `reason` says why and what would help. */
const char *tni_cache_folder(const tni_cache *cache);
const char *tni_cache_reason(const tni_cache *cache); /* "" with a folder */

/* An entry is found by `kind` (a legal name: "verdict", "cubin") and the SHA-256 of `key`. A put
 * replaces; entries beyond the limit go, least recently used first. An entry counts its size and
 * 88 bytes; one that is larger than the limit is refused (TN_INVALID_ARGUMENT). TN_IO when the
 * folder takes nothing more (disk full, now read-only, gone): what was there stays, nothing
 * half-written is left, and the caller decides.
 *
 * What other processes put is counted from time to time, so that while several write at once the
 * folder can exceed the limit until one of them counts again. */
tn_status tni_cache_put(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                        const void *data, size_t size, tn_error *err);

/* How many puts into a folder succeeded in this process so far. */
uint64_t tni_cache_written(void);

/* Gives a copy: tni_release it. TN_NOT_FOUND when there is none; an entry that is torn or changed
 * is removed and TN_NOT_FOUND too. TN_IO when the system would not let it be read. */
tn_status tni_cache_get(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                        void **out, size_t *out_size, tn_error *err);

/* Afterwards it is not there; TN_OK also when it never was. */
tn_status tni_cache_remove(tni_cache *cache, const char *kind, const void *key, size_t key_size,
                           tn_error *err);

/* Drops entries, least recently used first, until at most `limit_bytes` remain; 0 clears. Also
 * drops what crashed writers left, when it is older than an hour. */
tn_status tni_cache_prune(tni_cache *cache, uint64_t limit_bytes, tn_error *err);

/* What is in it now, sound or not, counted as the limit counts it. */
tn_status tni_cache_count(tni_cache *cache, uint64_t *out_entries, uint64_t *out_bytes,
                          tn_error *err);

/* The same, one by one. A lock may be held meanwhile: `visit` calls nothing of the cache. */
typedef void tni_cache_visit(void *to, const char *kind, uint64_t bytes);
tn_status tni_cache_visit_all(tni_cache *cache, tni_cache_visit *visit, void *to, tn_error *err);

/* The folder the environment asks for: $TENON_CACHE, else $XDG_CACHE_HOME/tenon, else
 * $HOME/.cache/tenon. An empty or relative $TENON_CACHE means memory only; of the other two only
 * absolute paths count. False, with the reason as static text and nothing added, when there is none
 * or the process is privileged. */
bool tni_cache_default_folder(tni_buffer *out_folder, const char **out_reason);

/* That folder's cache, within TN_CACHE_LIMIT, or NULL: then nothing is kept beyond the process. A folder
 * that is wished for and cannot be used is told to the log, in the words of "`what` not kept: ...". The
 * caller releases it. */
tni_cache *tni_cache_open_default(const char *what);

#endif
