#include "parallel.h"

#include "fork.h"
#include "machine/machine.h"
#include "openmp.h"
#include "pool.h"
#include "thread.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A loop copies the engine under the lock, so changing the engine does not affect a running loop.
 * The pool is created at first use, and the number of threads can be set only while no loop
 * runs. */
static struct {
    tni_mutex lock;
    tn_parallel_engine engine; /* parallel_for is NULL: the program set no engine */
    _Atomic bool openmp;       /* without an engine: use OpenMP threads, not the pool */
    tni_pool *pool;
    int32_t requested;    /* requested threads; 0: the thread budget */
    int64_t running;      /* number of running loops */
    _Atomic int32_t hint; /* last result of tni_parallel_threads; 0: invalidated */
} process = {.lock = TNI_MUTEX_INIT};

static _Thread_local bool in_engine; /* inside a call of the program's engine */
static _Thread_local bool counted;   /* `running` counts a loop of this thread */

static void before_fork(void)
{
    tni_mutex_lock(&process.lock);
}

static void after_fork_in_parent(void)
{
    tni_mutex_unlock(&process.lock);
}

static void after_fork_in_child(void)
{
    process.running = counted;
    process.hint = 0;
    tni_openmp_forget();
    tni_mutex_unlock(&process.lock);
}

/* Registers the pools' hook first: this lock is held while a pool is created. */
static void watch_forks(void)
{
    static const tni_fork_hook hook = {before_fork, after_fork_in_parent, after_fork_in_child};
    tni_pool_watch_forks();
    tni_fork_watch(&hook);
}

void tni_parallel_watch_forks(void)
{
    static tni_once once = TNI_ONCE_INIT;
    tni_once_run(&once, watch_forks);
}

static void lock(void)
{
    tni_parallel_watch_forks();
    tni_mutex_lock(&process.lock);
}

static void unlock(void)
{
    tni_mutex_unlock(&process.lock);
}

/* The minimum of online processors, affinity, cpuset and the control group's quota. */
static int32_t read_budget(void)
{
    const tni_machine_query query = {.parts = TNI_MACHINE_BUDGET};
    tni_machine *machine = NULL;
    if (tni_machine_read(&query, &machine, NULL) != TN_OK)
        return tni_thread_processors();
    int32_t threads = machine->budget.threads;
    tni_machine_release(machine);
    return threads;
}

static int32_t requested_threads(void)
{
    if (process.requested > 0)
        return process.requested;
    int32_t threads = read_budget();
    return threads < TNI_POOL_THREADS_MAX ? threads : TNI_POOL_THREADS_MAX;
}

/* Returns NULL if out of memory; the next loop tries again. */
static tni_pool *pool_get(void)
{
    if (!process.pool) {
        (void)tni_pool_create(requested_threads(), &process.pool, NULL);
        process.hint = 0;
    }
    return process.pool;
}

/* The engine runs this wrapper instead of the task, so that nested loops are recognized and do not
 * enter the engine again, which may not be reentrant. */
struct call {
    tn_task *task;
    void *user;
};

static void run_one(void *user, int64_t index)
{
    const struct call *call = user;
    tni_pool_run_here(index, index + 1, call->task, call->user);
}

/* Called without the lock, because searching for a run-time may log. */
static bool has_openmp(void)
{
    return process.openmp && !in_engine && tni_openmp_ready();
}

void tni_parallel_for(int64_t count, tn_task *task, void *user)
{
    if (!task)
        return;
    if (count <= 0 || tni_pool_inside()) {
        tni_pool_run_here(0, count, task, user);
        return;
    }
    bool openmp = has_openmp();
    lock();
    tn_parallel_engine engine = process.engine;
    if (in_engine) /* the engine falls back on Tenon's own pool */
        engine.parallel_for = NULL;
    tni_pool *pool = engine.parallel_for || openmp ? NULL : pool_get();
    int32_t requested = process.requested;
    process.running++;
    counted = true;
    unlock();

    if (engine.parallel_for) {
        in_engine = true;
        engine.parallel_for(engine.self, count, run_one, &(struct call){task, user});
        in_engine = false;
    } else if (openmp)
        tni_openmp_for(requested, count, task, user);
    else if (pool)
        tni_pool_run(pool, count, task, user);
    else
        tni_pool_run_here(0, count, task, user);

    lock();
    process.running--;
    counted = false;
    unlock();
}

tn_status tn_parallel_engine_set(const tn_parallel_engine *engine, tn_error *err)
{
    const char *where = "tn_parallel_engine_set";
    if (engine && !TN_HAS(engine, tn_parallel_engine, threads))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "engine->struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_parallel_engine, threads), engine->struct_size);
    if (engine && !engine->parallel_for)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "engine->parallel_for is NULL");
    if (engine && engine->threads < 1)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "engine->threads: expected at least 1, got %d", (int)engine->threads);
    tn_parallel_engine copy = {.struct_size = sizeof copy};
    if (engine) {
        copy.self = engine->self;
        copy.parallel_for = engine->parallel_for;
        copy.threads = engine->threads;
    }
    lock();
    process.engine = copy;
    process.hint = 0;
    unlock();
    return TN_OK;
}

/* In OpenMP each thread has its own number, which the program may change at any time. */
static int32_t openmp_threads(void)
{
    int32_t threads = tni_openmp_threads();
    return process.requested > 0 && process.requested < threads ? process.requested : threads;
}

int32_t tni_parallel_threads(void)
{
    bool openmp = has_openmp();
    lock();
    bool engine = process.engine.parallel_for != NULL;
    int32_t threads = engine         ? process.engine.threads
                      : openmp       ? openmp_threads()
                      : process.pool ? tni_pool_threads(process.pool)
                                     : requested_threads();
    process.hint = process.openmp && !engine ? 0 : threads; /* 0: differs between threads */
    unlock();
    return threads;
}

void tni_parallel_openmp_set(bool openmp)
{
    lock();
    process.openmp = openmp;
    process.hint = 0;
    unlock();
}

int32_t tni_parallel_threads_hint(void)
{
    int32_t hint = atomic_load_explicit(&process.hint, memory_order_relaxed);
    return hint ? hint : tni_parallel_threads();
}

tn_status tni_parallel_threads_set(int32_t threads, tni_pool **out_ended, tn_error *err)
{
    const char *where = "tn_parallel_threads_set";
    if (threads < 0 || threads > TNI_POOL_THREADS_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "threads: expected 0 (all available processors) to %d, got %d",
                       (int)TNI_POOL_THREADS_MAX, (int)threads);
    lock();
    bool busy = process.running != 0 || tni_pool_inside();
    if (!busy) {
        *out_ended = process.pool;
        process.pool = NULL;
        process.requested = threads;
        process.hint = 0;
    }
    unlock();
    if (busy)
        return tn_fail(err, TN_BUSY, 0, where,
                       "a loop is running; set the number of threads between loops");
    return TN_OK;
}
