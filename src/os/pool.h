/* Tenon's own pool of threads. tenon/parallel.h is the process's one; tests make others. */
#ifndef TNI_OS_POOL_H
#define TNI_OS_POOL_H

#include "tenon/parallel.h"

#include <stdbool.h>

enum { TNI_POOL_THREADS_MAX = 1024 };

typedef struct tni_pool tni_pool;

/* A pool for loops on `threads` threads, the caller's included; TN_INVALID_ARGUMENT outside
 * 1..TNI_POOL_THREADS_MAX. Threads are started at the first loop of more than one index; if the
 * system gives fewer, loops run on those there are. Threads end when no loop needed one of them for two seconds, so that
 * they do not keep a process alive whose own threads have ended; the next loop starts them again. */
tn_status tni_pool_create(int32_t threads, tni_pool **out, tn_error *err);

/* Sets how long threads wait for a loop before they end. Must be called before the first loop. */
void tni_pool_idle_set(tni_pool *pool, int64_t ns);

/* Ends the threads. No loop may be running. Accepts NULL. */
void tni_pool_destroy(tni_pool *pool);

/* Runs task(user, i) for every i in [0, count); returns when all are done. Serial on the caller's
 * thread inside a task of any pool, or while another thread's loop occupies the pool. Needs no
 * memory while the threads are there. Tasks run with the caller's floating-point mode (rounding,
 * denormals) on whichever thread, where that is one register to copy.
 *
 * After fork() the child's first loop starts new threads. A child forked inside a task runs what
 * is left of the loop without the indices that other threads had taken; on a thread of the pool's,
 * that thread then ends, and the process with it. */
void tni_pool_run(tni_pool *pool, int64_t count, tn_task *task, void *user);

/* Threads that a loop has, the caller's included: those asked for until the first loop has tried
 * to start them, then those there are. */
int32_t tni_pool_threads(const tni_pool *pool);

/* Runs task(user, i) for every i in [first, end) on this thread, as part of some loop: loops
 * inside are serial. */
void tni_pool_run_here(int64_t first, int64_t end, tn_task *task, void *user);

/* True inside a task of any loop. */
bool tni_pool_inside(void);

/* Registers what a fork does to pools. For owners that create pools under a lock which a hook of
 * their own takes: theirs must be the newer one. */
void tni_pool_watch_forks(void);

#endif
