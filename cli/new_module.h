/* What `tenon new-module` writes, and the names that a module may have. */
#ifndef TENON_CLI_NEW_MODULE_H
#define TENON_CLI_NEW_MODULE_H

#include "command.h"

#include <stdbool.h>
#include <stddef.h>

/* A file of the new folder. In path and text, @NAME@ stands for the name of the module and @TENON@
 * for the version of Tenon. */
typedef struct new_module_file {
    const char *path; /* NULL ends a list */
    const unsigned char *text;
    const size_t *size;
} new_module_file;

/* A kind of module. */
typedef struct new_module_kind {
    const char *word;           /* "kernel", requested by --kernel; NULL ends the list */
    const char *const *folders; /* to create in the new folder; ends with NULL         */
    const new_module_file *files;
} new_module_kind;

extern const new_module_kind new_module_kinds[];

/* Returns EXIT_DONE if a new module of the kind may have the name; otherwise prints what is expected
 * and the nearest name that is possible. */
int new_module_check_name(const command *self, const new_module_kind *kind, const char *name);

#endif
