/* Tenon's own pool of threads. tenon/parallel.h is the process's one; tests make others. */
#ifndef TNI_OS_POOL_H
#define TNI_OS_POOL_H

#include "tenon/parallel.h"

typedef struct tni_pool tni_pool;

/* A pool for loops on `threads` threads, the caller's included. Threads are started at the first
 * loop; if the system gives fewer, loops run on those there are. */
tn_status tni_pool_create(int32_t threads, tni_pool **out, tn_error *err);

/* Ends the threads. No loop may be running. Accepts NULL. */
void tni_pool_destroy(tni_pool *pool);

/* Runs task(user, i) for every i in [0, count); returns when all are done. Serial on the caller's
 * thread inside a task of any pool, or while another thread's loop occupies the pool. */
void tni_pool_run(tni_pool *pool, int64_t count, tn_task *task, void *user);

/* Threads that a loop really has now, the caller's included. */
int32_t tni_pool_threads(const tni_pool *pool);

#endif
