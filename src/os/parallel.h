/* Parallel loops, without the settings layer that provides the requested number of threads. */
#ifndef TNI_OS_PARALLEL_H
#define TNI_OS_PARALLEL_H

#include "pool.h"

#include <stdbool.h>

/* As the functions of the same names in tenon/parallel.h, but without reading settings first. */
void tni_parallel_for(int64_t count, tn_task *task, void *user);
int32_t tni_parallel_threads(void);

/* The last result of tni_parallel_threads, if still valid: as cheap as reading a variable. Outdated
 * only if the system's own limits changed before the first loop. */
int32_t tni_parallel_threads_hint(void);

/* The next loop creates a pool of this many threads (0: as many as the process may use). *out_ended
 * is the previous pool, or NULL. The caller must destroy it without holding a lock: its threads end
 * then, and thread-exit code of the program may call anything. */
tn_status tni_parallel_threads_set(int32_t threads, tni_pool **out_ended, tn_error *err);

/* Whether loops run on the threads of the OpenMP run-time in the process. While none exists, and
 * in a child of fork(), they run on Tenon's own threads. */
void tni_parallel_openmp_set(bool openmp);

/* Registers the fork hook of loops. For callers that use the functions above under a lock which
 * their own hook takes: their hook must be registered after this one. */
void tni_parallel_watch_forks(void);

#endif
