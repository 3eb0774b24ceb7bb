/* System services the suite needs that the C library does not have: threads, a monotonic clock, a
 * forked child, and a message on stderr when foreign code crashes. */
#ifndef TENON_CLI_CONFORMANCE_HOST_H
#define TENON_CLI_CONFORMANCE_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Runs `run(user)` on a new thread. HOST_LATE: it was still running after `seconds` and was
 * abandoned, so `user` must point to memory that stays valid. */
typedef enum host_ending { HOST_ENDED, HOST_LATE, HOST_NO_THREAD } host_ending;
host_ending host_run_for(void (*run)(void *user), void *user, double seconds);

/* Runs `run(user, i)` for every i below `count`, each on its own thread, and waits for all. Returns
 * false if the system cannot create a thread; the threads that were started have ended then too. */
bool host_run_together(size_t count, void (*run)(void *user, size_t index), void *user);

double host_seconds(void); /* since an arbitrary start */
void host_pause(double seconds);

/* Runs `run` in a forked child, which has only this thread. `run` returns true, or false with the
 * reason in `text`. A child that crashes or takes longer than `seconds` counts as false. */
typedef enum host_child { HOST_CHILD_TRUE, HOST_CHILD_FALSE, HOST_NO_FORK } host_child;
host_child host_fork(bool (*run)(void *user, char *text, size_t size), void *user, double seconds,
                     char *text, size_t size);

/* Runs a command line. Returns true if it exited with 0; otherwise false, with how it ended in
 * `text`. */
bool host_command(const char *line, char *text, size_t size);

/* Forks: the child returns, and this process waits for it and ends as it does. If foreign code ends
 * the child by _exit(), that is written to stderr with the place, and the exit code is 1. Must be
 * called before any thread is created. Does nothing if the system cannot fork. */
void host_supervise(void);

/* Ends the process with this exit code, without cleaning up, although foreign code may still run. */
void host_end(int code);

/* States what foreign code runs now: "in the case copy.2d". `place` must stay valid; NULL: none. If the
 * process crashes, or foreign code calls exit(), that is written to stderr with the place. Signal
 * handlers that were installed before still run; after exit() the exit code is 1. */
void host_place(const char *place);
const char *host_place_now(void); /* "" for none */

#endif
