/* Options of one command, read from one table that also generates its help. */
#ifndef TENON_CLI_OPTIONS_H
#define TENON_CLI_OPTIONS_H

#include "command.h"

#include <stdbool.h>

/* The values of an option, in the order given; the strings are those of the arguments. Zeroed is
 * empty. */
enum { OPTION_VALUES_MAX = 64 };
typedef struct option_values {
    const char *texts[OPTION_VALUES_MAX];
    size_t count;
} option_values;

/* An option has either `given` or `values`. A row whose name does not begin with '-' takes the
 * words that belong to no option; there is at most one such row. */
typedef struct option_row {
    const char *name; /* "--json"; or "NAME" */
    const char *word; /* name of its value in the help: "F"; NULL if it takes no value */
    const char *help;
    bool *given;
    option_values *values; /* from `--name VALUE` or `--name=VALUE` */
    size_t most;           /* how often it may be given with a value */
} option_row;

enum { OPTIONS_RUN = -1, OPTION_ACTIONS_MAX = 8 };

/* Parses `arguments` (those after the command's name) by `rows`. OPTIONS_RUN: continue. Otherwise
 * the exit code: help was requested and printed, or an error was reported. --help and --set always
 * exist; the settings of --set are in effect for the process when this returns. For every command,
 * prints warnings about invalid settings in environment and file. */
int options_read(const command *self, const option_row *rows, size_t row_count, int count,
                 char **arguments);

/* The two halves of options_read, for a command that also needs the state without --set.
 * options_parse changes no setting; options_apply applies the settings and prints warnings.
 * options_sets returns the number of --set options. */
int options_parse(const command *self, const option_row *rows, size_t row_count, int count,
                  char **arguments);
int options_apply(void);
size_t options_sets(void);

/* Returns OPTIONS_RUN, or prints an error and returns EXIT_WRONG_USE if the row has fewer words than
 * `least`. */
int options_need(const command *self, const option_row *row, size_t least);

/* An action of a command: the first of its words, and what follows it. */
typedef struct option_action {
    const char *name;
    const char *takes;  /* "FILE FILE"; "" for nothing */
    size_t least, most; /* number of words, including the name */
} option_action;

/* Returns the index of the action that the words begin with, 0 without words, or -1 after reporting
 * an error: there is no such action, or too few or too many words follow it. */
int options_action(const command *self, const option_action *actions, size_t count,
                   const option_values *words);

/* Parses the options before the command's name: `--set KEY=VALUE`, repeatedly. *out_used is the number of
 * arguments used. Returns OPTIONS_RUN, or the exit code of an error that was reported. */
int options_begin(int count, char **arguments, int *out_used);

/* "; did you mean X?" for the nearest of `names`, or "". The text is static. */
const char *suggestion(const char *word, const char *const *names, size_t count);

#endif
