/* What `tenon explain` found out about one problem, and the ways to tell it. */
#ifndef TENON_CLI_EXPLAIN_H
#define TENON_CLI_EXPLAIN_H

#include "findings.h"
#include "json.h"
#include "settings.h"

typedef struct explained {
    tn_decision *now;
    tn_decision *before; /* without what --set changes; NULL when there is no --set */
} explained;

/* What the problems share. */
typedef struct explained_world {
    findings found;          /* devices and machine   */
    found_settings settings; /* as they are with --set */
} explained_world;

/* The word of `determinism`; NULL when it asks for nothing. */
const char *explained_class(const explained_world *world);

/* Whether the kernel is refused for `determinism`. */
bool is_offender(const tn_candidate *candidate);

/* Whether a setting has a value of its own that is not the default. */
bool is_changed(const found_setting *row);

/* The kernel's name; "nothing" for none. */
const char *name_of_taken(const tn_decision *decision);

/* As a bug report has it. */
void explained_print(const explained_world *world, const explained *problem);

/* The keys of one problem, into an object that is open. */
void explained_write(json *to, const explained_world *world, const explained *problem);

/* The backends of attention; nothing, and an empty list, for other problems. */
void explained_print_backends(const tn_decision *decision);
void explained_write_backends(json *to, const tn_decision *decision);

/* The key "why". */
void explained_write_why(json *to, const tn_refusal *why);

#endif
