/* Replaces a file atomically: readers see the old or the new contents, never a part. Also a lock
 * for writers that derive the new contents from the old. */
#ifndef TNI_OS_REPLACE_H
#define TNI_OS_REPLACE_H

#include "tenon/base.h"

/* Writes a temporary file beside `path` and renames it. A symbolic link at `path` stays, and the
 * file it points to is replaced; fails with TN_NOT_FOUND if the link is dangling or the folder is
 * missing. The file keeps its owner and permissions; a new file gets its permissions from the
 * umask. If `path` is not a regular file (a device or a pipe), writes into it instead. Removes
 * temporary files that killed writers left beside `path` (beside.h), except on Windows. Other
 * failures as in file.h. Thread-safety: Safe; of two concurrent calls the later one wins. */
tn_status tni_file_replace(const char *path, const char *text, size_t size, tn_error *err);

/* As tni_file_replace, for a private file: a new file and missing parent folders are created with
 * access for the owner only. */
tn_status tni_file_replace_private(const char *path, const char *text, size_t size, tn_error *err);

/* Acquires the lock of `path`, which excludes other threads and processes; hold it from before the
 * file is read until it has been replaced. The lock is a file "PATH.lock" that is removed with the
 * lock; one left by a dead process does not block. Folders and links are handled as for a private
 * file. Waits a few seconds, then fails with TN_BUSY. On a file system without locks, it excludes
 * nobody. The caller releases it. */
typedef struct tni_file_lock tni_file_lock;
tn_status tni_file_lock_acquire(const char *path, tni_file_lock **out, tn_error *err);

/* Accepts NULL. */
void tni_file_lock_release(tni_file_lock *lock);

#endif
