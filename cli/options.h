/* Options of one command, read from one table that also writes its help. */
#ifndef TENON_CLI_OPTIONS_H
#define TENON_CLI_OPTIONS_H

#include "command.h"

#include <stdbool.h>

/* The values of an option, in the order given; lent by the arguments. Zeroed is empty. */
enum { OPTION_VALUES_MAX = 64 };
typedef struct option_values {
    const char *texts[OPTION_VALUES_MAX];
    size_t count;
} option_values;

/* An option has either `given` or `values`. A row whose name begins with another character than '-'
 * takes the words that belong to no option; there is at most one. */
typedef struct option_row {
    const char *name; /* "--json"; or "NAME"                                  */
    const char *word; /* that stands for its value in the help: "F"; or NULL */
    const char *help;
    bool *given;
    option_values *values; /* from `--name VALUE` or `--name=VALUE`   */
    size_t most;           /* how often it may be given with a value */
} option_row;

enum { OPTIONS_RUN = -1 };

/* Reads `arguments` (those after the command's name) by `rows`. OPTIONS_RUN: go on. Otherwise the
 * exit code: help was asked for and printed, or something was wrong and said. --help is always
 * there, and so is --set, whose settings hold for the process when this returns. What could not be taken
 * from environment and file is said, whatever the command. */
int options_read(const command *self, const option_row *rows, size_t row_count, int count,
                 char **arguments);

/* The two halves of it, for a command that also looks at what there is without --set: options_parse leaves
 * the settings as they are, options_apply sets them and says what is not followed. How many there are is in options_sets. */
int options_parse(const command *self, const option_row *rows, size_t row_count, int count,
                  char **arguments);
int options_apply(void);
size_t options_sets(void);

/* OPTIONS_RUN, or EXIT_WRONG_USE when the words of a row are missing, which is said. */
int options_need(const command *self, const option_row *row);

/* Takes what may stand before the command's name: `--set K=V`, again and again. The number of words it
 * took goes into *out_used. OPTIONS_RUN, or the exit code for what was wrong and said. */
int options_begin(int count, char **arguments, int *out_used);

/* "; did you mean X?" for the nearest of `names`, or "". The text is static. */
const char *suggestion(const char *word, const char *const *names, size_t count);

#endif
