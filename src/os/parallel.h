/* Parallel loops from below the settings, which say how many threads they wish for. */
#ifndef TNI_OS_PARALLEL_H
#define TNI_OS_PARALLEL_H

#include "pool.h"

#include <stdbool.h>

/* As the functions of tenon/parallel.h of the same names, but that nothing is read first. */
void tni_parallel_for(int64_t count, tn_task *task, void *user);
int32_t tni_parallel_threads(void);

/* The same as it was found last: as cheap as reading a number, and behind only where the system's own
 * limits changed before the first loop. */
int32_t tni_parallel_threads_hint(void);

/* The next loop makes a pool for so many threads, 0: for those the process may use. In *out_ended is the
 * one there was, or NULL: the caller destroys it when it holds no lock, as its threads end then, and what
 * the program does at a thread's end may ask for anything. */
tn_status tni_parallel_threads_set(int32_t threads, tni_pool **out_ended, tn_error *err);

/* Whether loops run on the threads of the OpenMP run-time that the process has, and as long as there is none, and in
 * a child of fork(), on Tenon's own. */
void tni_parallel_openmp_set(bool openmp);

/* Registers what a fork does to loops. For whoever calls the above under a lock which a hook of their
 * own takes: theirs must be the newer one. */
void tni_parallel_watch_forks(void);

#endif
