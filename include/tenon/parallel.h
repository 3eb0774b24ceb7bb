/* Parallel loops: Tenon's own pool of threads, or the one the program already has: its own engine, or with the setting
 * cpu.pool=openmp an OpenMP run-time's.
 * Thread-safety: Safe. */
#ifndef TENON_PARALLEL_H
#define TENON_PARALLEL_H

#include "base.h"

TN_BEGIN_DECLS

/* The program's own pool, in place of Tenon's. `parallel_for` runs task(user, i) for every i in
 * [0, count), in any order and on any threads, and returns when all are done. It may fall back on
 * tn_parallel_for, which then takes Tenon's own pool. */
typedef struct tn_parallel_engine {
    size_t struct_size;
    void *self;
    void (*parallel_for)(void *self, int64_t count, tn_task *task, void *user);
    int32_t threads; /* how many run at once; at least 1 */
    int32_t reserved;
} tn_parallel_engine;
TN_ENDS_WITH(tn_parallel_engine, reserved);

/* Runs every loop from now on with a copy of `engine`; NULL returns to Tenon's own pool.
 * Loops that are running finish where they began, so what `engine` points to must outlive them. */
TN_API tn_status tn_parallel_engine_set(const tn_parallel_engine *engine, tn_error *err);

/* Runs task(user, i) for every i in [0, count); returns when all are done; a NULL task is none.
 * Always completes: with
 * fewer threads than wished if the system gives no more, and on the caller's thread alone inside
 * another loop's task or while another thread's loop occupies the pool. A child that fork() makes
 * inside a task has that one thread: indices that others had taken are not run there. Threads of
 * Tenon's own pool end when no loop used them for two seconds, so a process ends at most that long after
 * its own threads; the next loop starts them again. */
TN_API void tn_parallel_for(int64_t count, tn_task *task, void *user);

/* How many threads a loop may use, the caller's included. */
TN_API int32_t tn_parallel_threads(void);

/* How many threads Tenon's own pool may use: the process's value of the setting cpu.threads. 0 takes it
 * back: to what the environment or the file wishes, else to what the process may use, the least of the
 * processors online, its affinity, and its group's cpuset and quota (rounded down, at least one).
 * More than that is accepted: the system then shares its processors out.
 * TN_INVALID_ARGUMENT outside 0..1024; TN_BUSY while a loop runs; TN_REFUSED when the settings are
 * frozen; TN_OUT_OF_MEMORY, but not for 0 where nothing else is set. */
TN_API tn_status tn_parallel_threads_set(int32_t threads, tn_error *err);

TN_END_DECLS

#endif
