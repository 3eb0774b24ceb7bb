/* Shared by the commands: exit codes, the table of commands, and error reporting. */
#ifndef TENON_CLI_COMMAND_H
#define TENON_CLI_COMMAND_H

#include <tenon/tenon.h>

/* Documented in docs/names.md. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILURES_FOUND = 1,
    EXIT_WRONG_USE = 2,
    EXIT_UNAVAILABLE = 3,
    EXIT_REFUSED = 4,
    EXIT_INTERNAL = 5
};

typedef struct command {
    const char *name;
    const char *usage;   /* arguments after the name */
    const char *summary; /* one line               */
    int (*run)(const struct command *self, int count, char **arguments);
} command;

int run_devices(const command *self, int count, char **arguments);
int run_libraries(const command *self, int count, char **arguments);
int run_modules(const command *self, int count, char **arguments);
int run_conformance(const command *self, int count, char **arguments);
int run_new_module(const command *self, int count, char **arguments);
int run_doctor(const command *self, int count, char **arguments);
int run_explain(const command *self, int count, char **arguments);
int run_einsum_path(const command *self, int count, char **arguments);
int run_bench(const command *self, int count, char **arguments);
int run_check(const command *self, int count, char **arguments);
int run_lock(const command *self, int count, char **arguments);
int run_warm(const command *self, int count, char **arguments);
int run_cache(const command *self, int count, char **arguments);
int run_settings(const command *self, int count, char **arguments);
int run_version(const command *self, int count, char **arguments);

/* Returns the exit code for a status. */
int code_of_status(tn_status status);

/* Prints the error to stderr and returns the exit code for it. */
int report_error(const tn_error *err);
/* The same for an error in the user's input, for instance in "--set"; `who` names its source. */
int report_request(const char *who, const tn_error *err);

#endif
