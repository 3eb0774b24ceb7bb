/* A cache's folder, for the POSIX files that open, read and prune it:
 *     CACHEDIR.TAG         tells programs that make backups to leave the folder out; only where Tenon made it
 *     KIND/ab/cdef...      an entry; abcdef... is the SHA-256 of its key
 *     KIND/ab/.tmp-...     one that is being written
 * What is called otherwise is not the cache's and is left alone. */
#ifndef TNI_OS_CACHE_FOLDER_H
#define TNI_OS_CACHE_FOLDER_H

#include "base/buffer.h"
#include "base/words.h"
#include "os/sha256.h"

#include <fcntl.h>
#include <stdbool.h>

#define TNI_CACHE_TEMPORARY ".tmp-"

enum { TNI_CACHE_FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW };

typedef struct tni_cache_file {
    int64_t used_ns;
    uint64_t size;
    char kind[TNI_NAME_MAX + 1];
    char hex[TNI_SHA256_HEX];
} tni_cache_file;

/* Zeroed is empty; tni_release the files. */
typedef struct tni_cache_files {
    tni_cache_file *files;
    size_t count;
    size_t capacity;
    uint64_t bytes;
} tni_cache_files;

/* The folder, made with what is missing on the way, and checked: a folder and no link to one, ours,
 * closed to others, writable. One that is made here gets the tag. -1 with the reason and a remedy. `path` is changed and restored. */
int tni_cache_root_open(char *path, tni_buffer *out_reason);

/* TN_IO for the errno of now, about the cache's folder `path`. */
tn_status tni_cache_io(tn_error *err, const char *where, const char *path);

/* The same about one entry of that folder. */
tn_status tni_cache_entry_io(tn_error *err, const char *where, const char *path, const char *kind,
                             const char *hex);

/* Closes and leaves errno as it was. */
void tni_cache_close(int file);

/* Opens the folder KIND/ab, made when it is missing and `make`; -1 with errno. */
int tni_cache_shelf_open(int root, const char *kind, const char *hex, bool make);

/* True when the entry is gone, by this or already; else false with errno: EISDIR for a folder in its place. */
bool tni_cache_unlink(int root, const char *kind, const char *hex);

/* All entries below `root`, and drops temporary files older than an hour on the way. `out` is to be
 * released after a failure too. */
tn_status tni_cache_files_list(int root, const char *path, tni_cache_files *out, tn_error *err);

/* Removes the least recently used until at most `limit` bytes remain. TN_IO, with the last entry that
 * could not be removed, when more remain. */
tn_status tni_cache_files_prune(int root, const char *path, tni_cache_files *files, uint64_t limit,
                                tn_error *err);

#endif
