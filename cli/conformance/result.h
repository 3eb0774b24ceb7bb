/* What a run of the suite found, told on a terminal, as JSON, and as a file that can be published. */
#ifndef TENON_CLI_CONFORMANCE_RESULT_H
#define TENON_CLI_CONFORMANCE_RESULT_H

#include "suite.h"

enum { RUN_PLATFORMS = 16 };

/* A whole run. Texts are lent by whoever filled it. */
typedef struct run {
    uint64_t seed;
    char date[24];                  /* "2026-01-31T12:00Z" */
    const tn_module_report *module; /* NULL when it is not known */
    suite_report platforms[RUN_PLATFORMS];
    size_t platform_count;
    const suite_case *const *kernels[RUN_PLATFORMS]; /* their cases, each list NULL-ended */
    size_t kernel_sets;
} run;

/* Nothing failed. */
bool run_is_sound(const run *of);

/* Something was tried at all. */
bool run_is_empty(const run *of);

void print_begin(const run *of, const tn_platform *platform);
void print_rule(const suite_case *c);
void print_case(void *unused, const suite_result *result); /* a suite_listener */
void print_end(const run *of, const suite_report *report);

void write_run(const run *of, const char *command_name); /* JSON, to stdout */

/* In Tenon's text form. TN_IO has the system's words. */
tn_status save_run(const run *of, const char *path, tn_error *err);

/* Whether it could be written there; what stands there stays. */
tn_status check_out(const char *path, tn_error *err);

#endif
