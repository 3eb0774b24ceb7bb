/* Where NVIDIA's libraries lie: in the process already, where the loader looks, in toolkits, and in the `nvidia`
 * folders of Python's packages. Thread-safety: Safe. */
#ifndef CUDA_FIND_H
#define CUDA_FIND_H

#include "tenon/module/module.h"

#include <stdbool.h>

typedef struct cuda_sought {
    const char *files;    /* by preference: "libnvrtc.so.13|libnvrtc.so.12" */
    const char *packages; /* folders below Python's `nvidia`: "cu13|cuda_nvrtc" */
    const char
        *kin; /* others of the same version that lie in its folder: "libcudnn.so.9"; or NULL */
    bool
        by_major; /* the kin's file names have its own major: with one of another it is not taken */
} cuda_sought;

/* Binds as host->library_bind does: what the process has already, else what lies beside the kin that it has, as two
 * versions of one library do not go together; else the loader's own, else the first file that opens. When it
 * succeeds, `err` says from where, and what else is there and was passed over. */
tn_status cuda_find_bind(const tn_host *host, const cuda_sought *sought, const tn_symbol *symbols,
                         size_t count, void *table, tn_error *err);

/* Where that would find it, as far as files tell: a tn_library_row's `look`. Opens nothing. */
tn_status cuda_find_look(const tn_host *host, const cuda_sought *sought, char *out_path,
                         size_t size, tn_error *err);

#endif
