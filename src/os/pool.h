/* Tenon's own thread pool. tenon/parallel.h uses one per process; tests create others. */
#ifndef TNI_OS_POOL_H
#define TNI_OS_POOL_H

#include "tenon/parallel.h"

#include <stdbool.h>

enum { TNI_POOL_THREADS_MAX = 1024 };

typedef struct tni_pool tni_pool;

/* Creates a pool for loops on `threads` threads, including the caller's; fails with
 * TN_INVALID_ARGUMENT outside 1..TNI_POOL_THREADS_MAX. Threads are started at the first loop of
 * more than one index; if the system allows fewer, loops run on those. Threads end when no loop has
 * needed them for two seconds, so that they do not keep a process alive whose own threads have
 * ended; the next loop starts them again. */
tn_status tni_pool_create(int32_t threads, tni_pool **out, tn_error *err);

/* Sets how long threads wait for a loop before they end. Must be called before the first loop. */
void tni_pool_idle_set(tni_pool *pool, int64_t ns);

/* Ends the threads. No loop may be running. Accepts NULL. */
void tni_pool_destroy(tni_pool *pool);

/* Runs task(user, i) for every i in [0, count); returns when all are done. Runs serially on the
 * caller's thread inside a task of any pool, or while another thread's loop occupies the pool.
 * Allocates no memory while the threads exist. Tasks run with the caller's floating-point mode
 * (rounding, denormals) on every thread, on processors that keep it in one register.
 *
 * After fork() the child's first loop starts new threads. A child forked inside a task runs the
 * rest of the loop without the indices that other threads had taken; if it was forked on a thread
 * of the pool, that thread then ends, and the process with it. */
void tni_pool_run(tni_pool *pool, int64_t count, tn_task *task, void *user);

/* Number of threads of a loop, including the caller's: the requested number until the first loop
 * tries to start them, then the actual number. */
int32_t tni_pool_threads(const tni_pool *pool);

/* Runs task(user, i) for every i in [first, end) on this thread, as part of a loop: nested loops
 * run serially. */
void tni_pool_run_here(int64_t first, int64_t end, tn_task *task, void *user);

/* True inside a task of any loop. */
bool tni_pool_inside(void);

/* Registers the fork hook of pools. For owners that create pools under a lock which their own hook
 * takes: their hook must be registered after this one. */
void tni_pool_watch_forks(void);

#endif
