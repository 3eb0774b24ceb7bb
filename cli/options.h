/* Options of one command, read from one table that also writes its help. */
#ifndef TENON_CLI_OPTIONS_H
#define TENON_CLI_OPTIONS_H

#include "command.h"

#include <stdbool.h>

typedef struct option_row {
    const char *name; /* "--json" */
    const char *help;
    bool *given;
} option_row;

enum { OPTIONS_RUN = -1 };

/* Reads `arguments` (those after the command's name) by `rows`. OPTIONS_RUN: go on. Otherwise the
 * exit code: help was asked for and printed, or something was wrong and said. --help is always
 * there. */
int options_read(const command *self, const option_row *rows, size_t row_count, int count,
                 char **arguments);

/* "; did you mean X?" for the nearest of `names`, or "". The text is static. */
const char *suggestion(const char *word, const char *const *names, size_t count);

#endif
