/* Parallel loops: on Tenon's own thread pool, on the program's own engine, or on the threads of an
 * OpenMP run-time (setting cpu.pool=openmp).
 * Thread-safety: Safe. */
#ifndef TENON_PARALLEL_H
#define TENON_PARALLEL_H

#include "base.h"

TN_BEGIN_DECLS

/* The program's own thread pool, used instead of Tenon's. `parallel_for` must run task(user, i) for
 * every i in [0, count), in any order and on any threads, and return when all are done. It may call
 * tn_parallel_for, which then uses Tenon's own pool. */
typedef struct tn_parallel_engine {
    size_t struct_size;
    void *self;
    void (*parallel_for)(void *self, int64_t count, tn_task *task, void *user);
    int32_t threads; /* number of threads that run at once; at least 1 */
    int32_t reserved;
} tn_parallel_engine;
TN_ENDS_WITH(tn_parallel_engine, reserved);

/* Uses a copy of `engine` for all later loops; NULL restores Tenon's own pool. Loops already
 * running finish where they started, so everything `engine` points to must outlive them. */
TN_API tn_status tn_parallel_engine_set(const tn_parallel_engine *engine, tn_error *err);

/* Runs task(user, i) for every i in [0, count) and returns when all are done; a NULL task does
 * nothing. Always completes: with fewer threads than requested if the system provides no more, and
 * on the calling thread alone inside another loop's task or while another thread's loop uses the
 * pool. If a task calls fork(), the child has only that thread: indices that other threads had
 * taken are not run there. Threads of Tenon's own pool end after two seconds without a loop, so a
 * process ends at most that long after its own threads; the next loop starts them again. */
TN_API void tn_parallel_for(int64_t count, tn_task *task, void *user);

/* Number of threads that a loop may use, including the calling thread. */
TN_API int32_t tn_parallel_threads(void);

/* Sets the number of threads of Tenon's own pool: the process's value of the setting cpu.threads. 0
 * removes it: then the value of the environment or the file applies, else the number that the
 * process may use, which is the smallest of the online processors, its affinity, and the cpuset and
 * quota of its cgroup (rounded down, at least one). A larger number is accepted; the system then
 * time-shares its processors. Fails with TN_INVALID_ARGUMENT outside 0..1024; with TN_BUSY while a
 * loop runs; with TN_REFUSED if the settings are frozen; with TN_OUT_OF_MEMORY, but not for 0 if no
 * other setting is set. */
TN_API tn_status tn_parallel_threads_set(int32_t threads, tn_error *err);

TN_END_DECLS

#endif
