/* A vendor library on a platform, as a module offers it: the single source for whether it is
 * available, its version and, if not, why.
 *
 * A library is opened when first needed, never just to list it. The pointer that `open` returns is
 * kept as long as the process and passed to the row's other functions.
 *
 * Thread-safety: rows are constant. `open` and then `version` are called once, on one thread; if
 * the host can start one, it is a separate thread, because libraries may need much stack. The host
 * holds no lock meanwhile. A call that failed for lack of memory or descriptors (TN_OUT_OF_MEMORY,
 * TN_BUSY) may be repeated. `verbose` may be called from any thread. */
#ifndef TENON_MODULE_LIBRARY_H
#define TENON_MODULE_LIBRARY_H

#include "module.h"

TN_BEGIN_DECLS

typedef struct tn_library_row {
    size_t struct_size;
    const char *name;            /* "openblas" */
    const char *platform;        /* "cpu"      */
    const char *files;           /* as for tn_host.library_bind: "libopenblas.so.0"; NULL: part
                                    of the module */
    const char *remedy;          /* what to install if it is missing: "apt install ..."; may be
                                    NULL if `files` is */
    const char *other;           /* alias: "onednn" for "mkldnn"; or NULL                     */
    const char *verbose_setting; /* setting for its diagnostic output: "mkl.verbose"; or NULL */

    /* Binds the symbols that the module needs from `files` with host->library_bind. *out_self is
     * the module's own state, or NULL. NULL: the host opens `files` to check that it can. On
     * success, a text written by tn_fail(err, TN_OK, ...) is shown with the library, for example
     * which of several files was used. */
    tn_status (*open)(const tn_host *host, void **out_self, tn_error *err);

    /* The vendor's version number (cuDNN 9.10.2 is 91002); if the vendor has only parts, major *
     * 10000 + minor * 100 + patch; -1 if unknown. The text buffer has `size` bytes, including the
     * terminator. NULL: unknown. */
    tn_status (*version)(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err);

    /* Sets its diagnostic output: 0 none, 1 what it runs, 2 also what it creates. Required with
     * verbose_setting. */
    tn_status (*verbose)(void *self, int32_t level, tn_error *err);

    /* For a library that is not open: where `open` would load it from, judging by files alone.
     * Writes the path, truncated to `size` bytes, and by tn_fail(err, TN_OK, ...) why it is that
     * one. Opens nothing; may be called from any thread. Fails with TN_UNAVAILABLE if none
     * exists. NULL: the file that the host finds for `files`. */
    tn_status (*look)(const tn_host *host, char *out_path, size_t size, tn_error *err);
} tn_library_row;
TN_ENDS_WITH(tn_library_row, look);

TN_END_DECLS

#endif
