/* Files and folders, as far as the loader needs them. Thread-safety: Safe. */
#ifndef TNI_OS_FILE_H
#define TNI_OS_FILE_H

#include "tenon/base.h"

#include <stdbool.h>

#if defined(_WIN32)
#define TNI_LIBRARY_SUFFIX ".dll"
#define TNI_PATH_SEPARATOR ';'
#else
#define TNI_LIBRARY_SUFFIX ".so"
#define TNI_PATH_SEPARATOR ':'
#endif

/* Which file this is: equal when nothing about it has changed. */
typedef struct tni_file_id {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t changed_ns; /* last change of the contents, as the file says                */
    int64_t touched_ns; /* last change of anything about it, which only the system sets */
    bool is_folder;
    bool is_regular;
    bool anyone_writes; /* the system lets every user write to it */
} tni_file_id;

/* Follows links. TN_NOT_FOUND, TN_NOT_PERMITTED or TN_IO with the system's code; TN_BUSY when the
 * process has no descriptor left. As all calls here. */
tn_status tni_file_identify(const char *path, tni_file_id *out, tn_error *err);

/* The whole file and a terminator after it: tni_release it. A file of more than `limit` bytes is
 * refused with TN_INVALID_ARGUMENT. Works for files of the system that have no size of their own. */
tn_status tni_file_read(const char *path, size_t limit, char **out, size_t *out_size,
                        tn_error *err);

/* Reads `size` bytes at `offset` from an open file; false when they are not all there. */
typedef struct tni_file tni_file;
tn_status tni_file_open(const char *path, tni_file **out, uint64_t *out_size, tn_error *err);
bool tni_file_read_at(tni_file *file, uint64_t offset, void *to, size_t size);

/* TN_OK when every read so far found what there is, be it too little; else why one failed. */
tn_status tni_file_check(const tni_file *file, const char *path, tn_error *err);
void tni_file_close(tni_file *file);

/* The names in a folder that begin with `prefix` and end with `suffix`, sorted by their bytes. One
 * allocation: tni_release the list. */
typedef struct tni_names {
    size_t count;
    const char *names[];
} tni_names;
tn_status tni_folder_list(const char *path, const char *prefix, const char *suffix, tni_names **out,
                          tn_error *err);

bool tni_path_is_absolute(const char *path);

/* The path as it stands, from the current folder when it is relative; links in it stay:
 * tni_release it. Nothing need be there. */
tn_status tni_path_absolute(const char *path, char **out, tn_error *err);

/* The path without links, "." or "..": tni_release it. TN_NOT_FOUND when nothing is there. */
tn_status tni_path_real(const char *path, char **out, tn_error *err);

/* "folder/name" and "folder of path": tni_release them. NULL for want of memory. */
char *tni_path_join(const char *folder, const char *name);
char *tni_path_folder(const char *path);

/* What comes after the last separator; within `path`. */
const char *tni_path_name(const char *path);

#endif
