/* A vendor's library on a platform, as a module offers it: so that "is it here, which version, and
 * if not, why" has one answer.
 * Thread-safety: rows are constant. */
#ifndef TENON_MODULE_LIBRARY_H
#define TENON_MODULE_LIBRARY_H

#include "module.h"

TN_BEGIN_DECLS

typedef struct tn_library_row {
    size_t struct_size;
    const char *name;     /* "openblas"                                                  */
    const char *platform; /* "cpu"                                                       */
    const char *files;    /* as for tn_host.library_bind: "libopenblas.so.0"             */
    const char *remedy;   /* what to install when it is absent: "apt install ..."        */
} tn_library_row;
TN_ENDS_WITH(tn_library_row, remedy);

TN_END_DECLS

#endif
