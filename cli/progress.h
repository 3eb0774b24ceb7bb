/* A progress bar for long operations. Writes to stderr, and only if that is a terminal. */
#ifndef TENON_CLI_PROGRESS_H
#define TENON_CLI_PROGRESS_H

#include <stddef.h>

/* Draws `done` of `count` and the current item; with `what` NULL, erases the bar. `to` is unused:
 * the function is a kernels_progress. */
void progress_show(void *to, size_t done, size_t count, const char *what);

#endif
