/* The version of Tenon, at compile time and at run time.
 * Thread-safety: Safe. */
#ifndef TENON_VERSION_H
#define TENON_VERSION_H

#include "base.h"

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

TN_BEGIN_DECLS

/* How the library was built. Strings are static. */
typedef struct tn_build {
    size_t struct_size;
    uint32_t major;
    uint32_t minor;
    uint32_t patch;
    uint32_t module_abi_major;
    uint32_t module_abi_minor;
    uint32_t reserved;
    const char *compiler;  /* "gcc 12.2.0"                            */
    const char *target;    /* "linux-x86_64"                          */
    const char *sanitizer; /* "address", "thread", "memory" or "none" */
} tn_build;
TN_ENDS_WITH(tn_build, sanitizer);

/* The version of the running library, "0.1.0"; the headers may have another version. Static
 * text. */
TN_API const char *tn_version(void);

/* How the running library was built. Static; test newer fields with TN_HAS. */
TN_API const tn_build *tn_build_get(void);

TN_END_DECLS

#endif
