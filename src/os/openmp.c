#include "openmp.h"

#include "base/log.h"
#include "clock.h"
#include "dl.h"
#include "float_mode.h"
#include "loaded.h"
#include "pool.h"

#include <stdatomic.h>

/* The entry point that compilers call for a parallel region, and a query that programs may call.
 * Every run-time exports both, because code compiled by gcc must work with each of them. `threads`
 * 0 means the caller's default. */
typedef void run_parallel_fn(void (*body)(void *data), void *data, unsigned threads,
                             unsigned flags);
typedef int max_threads_fn(void);

enum { LOOK_NS = 100000000, PATH_MOST = 4096 };

static struct {
    _Atomic(run_parallel_fn *) run_parallel; /* set last; NULL: none was found */
    max_threads_fn *max_threads;
    _Atomic bool looking, occupied, told;
    _Atomic int32_t joined;     /* threads of the current loop */
    _Atomic uint32_t ended;     /* threads that finished, over all loops */
    _Atomic int64_t look_again; /* time of the next search, at the earliest */
    bool forked;                /* this process is a forked child */
} runtime;

/* The loader is locked: copies the path, to open it later. */
static void copy_first_path(void *user, const char *path)
{
    char *first = user;
    if (!first[0] && tni_openmp_is_runtime(path))
        tn_text_fit(first, PATH_MOST, path);
}

static void warn_no_runtime(const char *path, const char *lacks)
{
    if (atomic_exchange(&runtime.told, true))
        return;
    if (path[0])
        tni_log(TN_LOG_WARNING,
                "cpu.pool=openmp: %s was not found in %s: loops run on Tenon's own threads", lacks,
                path);
    else
        tni_log(TN_LOG_WARNING,
                "cpu.pool=openmp: no OpenMP runtime is loaded in this process: loops "
                "run on Tenon's own threads until one is");
}

static void find_runtime(void)
{
    char path[PATH_MOST] = "";
    void *handle = NULL, *run = NULL, *threads = NULL;
    run_parallel_fn *entry;
    (void)tni_loaded_each(copy_first_path, path);
    if (path[0] && tni_dl_open(path, &handle, NULL) == TN_OK) {
        run = tni_dl_symbol(handle, "GOMP_parallel", NULL);
        threads = tni_dl_symbol(handle, "omp_get_max_threads", NULL);
    }
    if (!run || !threads) {
        warn_no_runtime(path, run ? "omp_get_max_threads" : "GOMP_parallel");
        return;
    }
    memcpy(&runtime.max_threads, &threads, sizeof threads);
    memcpy(&entry, &run, sizeof run);
    atomic_store(&runtime.run_parallel, entry);
}

bool tni_openmp_ready(void)
{
    if (atomic_load_explicit(&runtime.run_parallel, memory_order_acquire))
        return true;
    if (runtime.forked || tni_clock_ns() < atomic_load(&runtime.look_again) ||
        atomic_exchange(&runtime.looking, true))
        return false;
    find_runtime();
    atomic_store(&runtime.look_again, tni_clock_ns() + LOOK_NS);
    atomic_store(&runtime.looking, false);
    return atomic_load(&runtime.run_parallel) != NULL;
}

void tni_openmp_forget(void)
{
    runtime.forked = true;
    atomic_store(&runtime.run_parallel, NULL);
    atomic_store(&runtime.looking, false);
}

int32_t tni_openmp_threads(void)
{
    int threads = atomic_load(&runtime.run_parallel) ? runtime.max_threads() : 1;
    return threads < 1 ? 1 : threads > TNI_POOL_THREADS_MAX ? TNI_POOL_THREADS_MAX : threads;
}

/* The current loop; there is at most one. */
typedef struct loop {
    _Atomic int64_t next;
    int32_t most;
    int64_t count;
    uint64_t mode;
    tn_task *task;
    void *user;
} loop;

/* A thread's work is between its increments of `joined` and `ended`. They order it after everything
 * the caller did before the loop and before everything the caller does after it, independent of the
 * run-time. */
static void run_share(void *data)
{
    loop *l = data;
    if (atomic_fetch_add(&runtime.joined, 1) < l->most) {
        const uint64_t before = tni_float_mode_get();
        tni_float_mode_set(l->mode);
        for (int64_t i; (i = atomic_fetch_add(&l->next, 1)) < l->count;)
            tni_pool_run_here(i, i + 1, l->task, l->user);
        tni_float_mode_set(before);
    }
    atomic_fetch_add(&runtime.ended, 1);
}

void tni_openmp_for(int32_t most, int64_t count, tn_task *task, void *user)
{
    run_parallel_fn *run = atomic_load(&runtime.run_parallel);
    if (!run || most == 1 || count <= 1 || tni_pool_inside() ||
        atomic_exchange(&runtime.occupied, true)) {
        tni_pool_run_here(0, count, task, user);
        return;
    }
    loop l = {.most = most > 0 ? most : INT32_MAX,
              .count = count,
              .mode = tni_float_mode_get(),
              .task = task,
              .user = user};
    atomic_store(&runtime.joined, 0);
    run(run_share, &l, 0, 0);
    (void)atomic_load(&runtime.ended);
    atomic_store(&runtime.occupied, false);
}
