/* Results of `tenon explain` for one problem, and functions that print them. */
#ifndef TENON_CLI_EXPLAIN_H
#define TENON_CLI_EXPLAIN_H

#include "findings.h"
#include "json.h"
#include "settings.h"

typedef struct explained {
    tn_decision *now;
    tn_decision *before; /* without the changes of --set; NULL if there is no --set */
} explained;

/* Shared by all problems. */
typedef struct explained_world {
    findings found;          /* devices and machine */
    found_settings settings; /* with --set applied */
    bool full;               /* lists kernels of other dtypes too */
} explained_world;

/* The value of `determinism`; NULL if nothing is requested. */
const char *explained_class(const explained_world *world);

/* Whether the kernel is refused because of `determinism`. */
bool is_offender(const tn_candidate *candidate);

/* Whether a setting was itself set to a value other than the default. */
bool is_changed(const found_setting *row);

/* Prints text for a bug report. */
void explained_print(const explained_world *world, const explained *problem);

/* Writes the keys of one problem into the open object. */
void explained_write(json *to, const explained_world *world, const explained *problem);

/* The device of that id; NULL if it was not found. */
const found_device *explained_device(const findings *found, const char *id);

#endif
