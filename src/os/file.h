/* Files and folders: the functions that the loader needs. Thread-safety: Safe. */
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

/* Identifies a file and its state: compares equal if nothing about the file has changed. */
typedef struct tni_file_id {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t changed_ns; /* last change of the contents, as the file records it */
    int64_t touched_ns; /* last change of anything about it, which only the system sets */
    bool is_folder;
    bool is_regular;
    bool anyone_writes; /* every user may write to it */
} tni_file_id;

/* Follows links. Like all functions here, fails with TN_NOT_FOUND, TN_NOT_PERMITTED or TN_IO with
 * the system's error code, or with TN_BUSY if the process has no free file descriptor. */
tn_status tni_file_identify(const char *path, tni_file_id *out, tn_error *err);

/* Reads the whole file and appends a terminator: release it with tni_release. Fails with
 * TN_INVALID_ARGUMENT if the file has more than `limit` bytes. Also works for system files that
 * report no size (/proc, /sys). */
tn_status tni_file_read(const char *path, size_t limit, char **out, size_t *out_size,
                        tn_error *err);

/* tni_file_read_at reads `size` bytes at `offset` from an open file; false unless all could be
 * read. */
typedef struct tni_file tni_file;
tn_status tni_file_open(const char *path, tni_file **out, uint64_t *out_size, tn_error *err);
bool tni_file_read_at(tni_file *file, uint64_t offset, void *to, size_t size);

/* Returns TN_OK if no read has failed so far (a read past the end is no failure); else the reason
 * of the failure. */
tn_status tni_file_check(const tni_file *file, const char *path, tn_error *err);
void tni_file_close(tni_file *file);

/* Lists the names in a folder that begin with `prefix` and end with `suffix`, sorted by their
 * bytes. One allocation: release the list with tni_release. */
typedef struct tni_names {
    size_t count;
    const char *names[];
} tni_names;
tn_status tni_folder_list(const char *path, const char *prefix, const char *suffix, tni_names **out,
                          tn_error *err);

bool tni_path_is_absolute(const char *path);

/* Makes the path absolute, relative to the current folder, without resolving links: release it with
 * tni_release. The file need not exist. */
tn_status tni_path_absolute(const char *path, char **out, tn_error *err);

/* Resolves links, "." and "..": release it with tni_release. Fails with TN_NOT_FOUND if the file
 * does not exist. */
tn_status tni_path_real(const char *path, char **out, tn_error *err);

/* Return "folder/name" and the folder of `path`: release them with tni_release. NULL if out of
 * memory. */
char *tni_path_join(const char *folder, const char *name);
char *tni_path_folder(const char *path);

/* Returns the part of `path` after its last separator. */
const char *tni_path_name(const char *path);

#endif
