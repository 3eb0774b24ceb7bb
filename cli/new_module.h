/* The files that `tenon new-module` writes. */
#ifndef TENON_CLI_NEW_MODULE_H
#define TENON_CLI_NEW_MODULE_H

#include <stddef.h>

typedef struct new_module_file {
    const char *path;         /* inside the new folder; NULL ends a list */
    const char *const *lines; /* ends with NULL */
} new_module_file;

extern const new_module_file new_module_platform[];

#endif
