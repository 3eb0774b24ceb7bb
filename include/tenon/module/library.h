/* A vendor's library on a platform, as a module offers it: so that "is it here, which version, and
 * if not, why" has one answer.
 *
 * A library is opened when it is first needed, never to list it. What `open` gives is kept as long as
 * the process and handed to the row's other functions.
 *
 * Thread-safety: rows are constant. `open` and, after it, `version` are called once, on one thread, which is
 * the host's own if it can start one, as libraries may need much stack; no lock of the host's is held; a call that had no memory or descriptor (TN_OUT_OF_MEMORY, TN_BUSY) may
 * come again. `verbose` may be called from any thread. */
#ifndef TENON_MODULE_LIBRARY_H
#define TENON_MODULE_LIBRARY_H

#include "module.h"

TN_BEGIN_DECLS

typedef struct tn_library_row {
    size_t struct_size;
    const char *name;            /* "openblas"                                               */
    const char *platform;        /* "cpu"                                                    */
    const char *files;           /* as for tn_host.library_bind: "libopenblas.so.0"; NULL: it is a
                                    part of the module                                       */
    const char *remedy;          /* what to install when it is absent: "apt install ..."; may be
                                    NULL where `files` is                                    */
    const char *other;           /* another name of it: "onednn" for "mkldnn"; or NULL       */
    const char *verbose_setting; /* the setting that makes it talk: "mkl.verbose"; or NULL   */

    /* Binds what the module needs of `files` with host->library_bind. *out_self is what it keeps, or
     * NULL. NULL: the host opens `files` to see that it can. When it succeeds, what it writes to
     * err by tn_fail(err, TN_OK, ...) is shown with the library: which of several files was taken. */
    tn_status (*open)(const tn_host *host, void **out_self, tn_error *err);

    /* As the vendor numbers it (cuDNN 9.10.2 is 91002); one that has parts alone as
     * major * 10000 + minor * 100 + patch; -1 for unknown. The text has `size` bytes, the terminator
     * among them. NULL: unknown. */
    tn_status (*version)(void *self, int64_t *out_number, char *out_text, size_t size,
                         tn_error *err);

    /* How much it tells of what it does: 0 nothing, 1 what it runs, 2 also what it builds. There when
     * verbose_setting is. */
    tn_status (*verbose)(void *self, int32_t level, tn_error *err);

    /* Where `open` would take it from, as far as files tell, for one that is not open: the path, cut to `size` bytes,
     * and by tn_fail(err, TN_OK, ...) how it comes to be that one. Opens nothing; from any thread. TN_UNAVAILABLE
     * where there is none. NULL: where the host finds `files`. */
    tn_status (*look)(const tn_host *host, char *out_path, size_t size, tn_error *err);
} tn_library_row;
TN_ENDS_WITH(tn_library_row, look);

TN_END_DECLS

#endif
