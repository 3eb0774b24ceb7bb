/* Writing a file so that whoever reads it sees the old or the new one, never a part; and one at a time,
 * for those who make the new one from the old. */
#ifndef TNI_OS_REPLACE_H
#define TNI_OS_REPLACE_H

#include "tenon/base.h"

/* Writes beside `path` and renames; a link at `path` stays one, and its file is replaced; one that leads
 * nowhere is TN_NOT_FOUND, and so is a folder that is missing. The file keeps its owner and who may read and
 * write it; who may read a new one is up to the umask. What is there and is no regular file, a device or a
 * pipe, is written into and stays. Temporary files that killed writers left beside `path` are removed (beside.h); on
 * Windows they stay. Statuses as in file.h.
 * Thread-safety: Safe; of two at once the later one stays. */
tn_status tni_file_replace(const char *path, const char *text, size_t size, tn_error *err);

/* The same for a file that is its owner's alone: a new one is, and so are the folders above it, which are
 * made where they are missing. */
tn_status tni_file_replace_private(const char *path, const char *text, size_t size, tn_error *err);

/* Keeps everyone else who asks for the lock of `path` out, in this process and in others, from before the
 * file is read until it has been replaced. It is a file beside it, "PATH.lock", which goes with the lock;
 * one that a process left behind when it died is nobody's. Folders and links as for a private file. Waits a few
 * seconds, then TN_BUSY. On a file system without locks everyone gets it. The caller unlocks. */
typedef struct tni_file_lock tni_file_lock;
tn_status tni_file_lock_take(const char *path, tni_file_lock **out, tn_error *err);

/* Accepts NULL. */
void tni_file_lock_release(tni_file_lock *lock);

#endif
