/* A bar on the terminal while something takes long. Writes to stderr, and only when that is a terminal. */
#ifndef TENON_CLI_PROGRESS_H
#define TENON_CLI_PROGRESS_H

#include <stddef.h>

/* Draws `done` of `count` and what is at hand; with `what` NULL, takes the bar away. `to` is not used: the
 * function is a kernels_progress. */
void progress_show(void *to, size_t done, size_t count, const char *what);

#endif
