/* What the suite asks of the system and the C library does not tell: threads, a clock that does not
 * jump, a forked child, and a last word when foreign code crashes. */
#ifndef TENON_CLI_CONFORMANCE_HOST_H
#define TENON_CLI_CONFORMANCE_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Runs `run(user)` on a thread of its own. HOST_LATE: it was still running after `seconds` and is left
 * behind, so what `user` points to must stay. */
typedef enum host_ending { HOST_ENDED, HOST_LATE, HOST_NO_THREAD } host_ending;
host_ending host_run_for(void (*run)(void *user), void *user, double seconds);

/* Runs `run(user, i)` for every i below `count`, each on a thread of its own, and waits for all. False
 * when the system gives no thread; those that began have ended then too. */
bool host_run_together(size_t count, void (*run)(void *user, size_t index), void *user);

double host_seconds(void); /* since some moment */
void host_pause(double seconds);

/* Runs `run` in a forked child, which has this one thread. It returns true, or false with the reason
 * in `text`; a child that crashes or takes longer than `seconds` is a false one. */
typedef enum host_child { HOST_CHILD_TRUE, HOST_CHILD_FALSE, HOST_NO_FORK } host_child;
host_child host_fork(bool (*run)(void *user, char *text, size_t size), void *user, double seconds,
                     char *text, size_t size);

/* Runs a command line. False, with how it ended in `text`, unless it ended with 0. */
bool host_command(const char *line, char *text, size_t size);

/* When the process crashes from now on, `words` (which must stay; NULL for none) go to stderr first.
 * What handled crashes before still does. */
void host_crash_words(const char *words);

#endif
