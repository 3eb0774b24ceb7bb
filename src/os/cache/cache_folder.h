/* Layout of a cache's folder, for the POSIX files that open, read and prune it:
 *     CACHEDIR.TAG         tells programs that make backups to leave the folder out; only where Tenon made it
 *     KIND/ab/cdef...      an entry; abcdef... is the SHA-256 of its key
 *     KIND/ab/.tmp-...     one that is being written
 * Files with other names do not belong to the cache and are never touched. */
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

/* Zero-initialized is empty. Release `files` with tni_release. */
typedef struct tni_cache_files {
    tni_cache_file *files;
    size_t count;
    size_t capacity;
    uint64_t bytes;
} tni_cache_files;

/* Opens the folder, after creating it and its missing parents, and checks it: it must be a folder
 * (not a symbolic link), owned by this user, inaccessible to others, and writable. A folder created
 * here gets the tag. Returns -1 with the reason and a remedy on failure. `path` is modified during
 * the call and restored. */
int tni_cache_root_open(char *path, tni_buffer *out_reason);

/* Fails with TN_IO for the current errno, about the cache's folder `path`. */
tn_status tni_cache_io(tn_error *err, const char *where, const char *path);

/* As above, about one entry of that folder. */
tn_status tni_cache_entry_io(tn_error *err, const char *where, const char *path, const char *kind,
                             const char *hex);

/* Closes the file and preserves errno. */
void tni_cache_close(int file);

/* Opens the folder KIND/ab; creates it if it is missing and `make` is true. Returns -1 with
 * errno. */
int tni_cache_shelf_open(int root, const char *kind, const char *hex, bool make);

/* Whether a folder of that name is in the shelf. Preserves errno. */
bool tni_cache_is_folder(int shelf, const char *name);

/* Returns true if the entry was removed or did not exist; else false with errno (EISDIR if there is
 * a folder in its place). */
bool tni_cache_unlink(int root, const char *kind, const char *hex);

/* Lists all entries below `root`. Also removes temporary files older than an hour. The caller must
 * release `out` also after a failure. */
tn_status tni_cache_files_list(int root, const char *path, tni_cache_files *out, tn_error *err);

/* Removes the least recently used entries until at most `limit` bytes remain. If more remain, fails
 * with TN_IO and names the last entry that could not be removed. */
tn_status tni_cache_files_prune(int root, const char *path, tni_cache_files *files, uint64_t limit,
                                tn_error *err);

#endif
