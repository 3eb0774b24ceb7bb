/* Finds NVIDIA's libraries: already loaded in the process, on the loader's path, in toolkits, and in the
 * `nvidia` folders of Python packages. Thread-safety: Safe. */
#ifndef CUDA_FIND_H
#define CUDA_FIND_H

#include "tenon/module/module.h"

#include <stdbool.h>

typedef struct cuda_sought {
    const char *files;    /* in order of preference: "libnvrtc.so.13|libnvrtc.so.12" */
    const char *packages; /* folders below Python's `nvidia`: "cu13|cuda_nvrtc" */
    const char *kin;      /* related, same version and folder: "libcudnn.so.9"; or NULL */
    bool by_major;        /* must have the same major version in its file name as a loaded `kin` */
} cuda_sought;

/* Binds like host->library_bind. Takes, in this order: what the process has loaded; what is next to a loaded `kin`,
 * because two versions of one library are not compatible; what the loader finds; the first file that opens. On
 * success `err` says where it was found, and which other files were passed over. */
tn_status cuda_find_bind(const tn_host *host, const cuda_sought *sought, const tn_symbol *symbols,
                         size_t count, void *table, tn_error *err);

/* Reports where cuda_find_bind would find it, judging by files only: the `look` of a
 * tn_library_row. Opens nothing. */
tn_status cuda_find_look(const tn_host *host, const cuda_sought *sought, char *out_path,
                         size_t size, tn_error *err);

/* Asks a library for the parts of its version: `property` gets 0, 1, 2 for major, minor, patch, as all of NVIDIA's
 * functions called GetProperty do, and returns 0 or an error, which is returned. 13.0.2 is 130002. */
int cuda_find_version(int (*property)(int which, int *out), int64_t *out_number, char *out_text,
                      size_t size);

#endif
