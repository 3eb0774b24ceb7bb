/* Results of a run of the suite: printed to a terminal, as JSON, and to a file that can be
 * published. */
#ifndef TENON_CLI_CONFORMANCE_RESULT_H
#define TENON_CLI_CONFORMANCE_RESULT_H

#include "suite.h"

enum { RUN_PLATFORMS = 16 };

/* A whole run. Its texts are borrowed from the code that filled it. */
typedef struct run {
    uint64_t seed;
    char date[24];                  /* "2026-01-31T12:00Z" */
    const tn_module_report *module; /* NULL if unknown */
    suite_report platforms[RUN_PLATFORMS];
    size_t platform_count;
    const suite_case *const *kernels[RUN_PLATFORMS]; /* kernel cases; each list ends with NULL */
    size_t kernel_sets;
} run;

/* Whether nothing failed. */
bool run_is_sound(const run *of);

/* Whether nothing was tried: every case was unavailable. */
bool run_is_empty(const run *of);

void print_begin(const run *of, const tn_platform *platform);
void print_rule(const suite_case *c);

/* The width of the column of names in which the cases fit, and those of the device interface. */
int name_width(const suite_case *const *cases, size_t count);
void print_case(void *user, const suite_result *result); /* a suite_listener; user: width, int * */
void print_end(const run *of, const suite_report *report);

void write_run(const run *of, const char *command_name); /* JSON, to stdout */

/* Writes the run in Tenon's text form. TN_IO has the system's error text. */
tn_status save_run(const run *of, const char *path, tn_error *err);

/* Checks that the file can be written; an existing file keeps its contents, but an empty one is
 * removed. */
tn_status check_out(const char *path, tn_error *err);

#endif
