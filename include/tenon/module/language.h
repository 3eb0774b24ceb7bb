/* A language: kernels compiled at run time from source text.
 * Thread-safety: rows are constant. */
#ifndef TENON_MODULE_LANGUAGE_H
#define TENON_MODULE_LANGUAGE_H

#include "module.h"

TN_BEGIN_DECLS

typedef struct tn_language_row {
    size_t struct_size;
    const char *name;     /* "nvrtc", "opencl-c", "host-c"                       */
    const char *platform; /* "cuda"                                              */
    const char *remedy;   /* what to install if its compiler is missing, or NULL */
    /* Returns the version of the compiler, or fails with TN_UNAVAILABLE and the reason. */
    tn_status (*version)(const tn_host *host, uint32_t *out_major, uint32_t *out_minor,
                         tn_error *err);
} tn_language_row;
TN_ENDS_WITH(tn_language_row, version);

TN_END_DECLS

#endif
