#include "pool.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/log.h"
#include "clock.h"
#include "float_mode.h"
#include "fork.h"
#include "thread.h"

#include <stdatomic.h>

/* All state that threads must agree on is one atomic word, so the single modification order of that
 * word decides every race:
 *   ACTIVE      workers inside the loop
 *   SEATS       workers that may still enter it; 0: the loop is closed
 *   SLEEPERS    workers that wait for `work`, or hold the lock and are about to
 *   WAITING     the caller waits for `idle`, or holds the lock and is about to
 *   QUIT        the workers end, for good or until the next loop starts others
 *   GENERATION  incremented with every loop; in the top bits, so that it wraps within them
 *
 * The caller takes indices until none are left, so a worker that comes late or never costs time but
 * cannot block a loop. The only possible hang would be a sleeper that nobody wakes, and that cannot
 * happen: a worker becomes a sleeper only by a compare-and-swap on a word without news, under the
 * lock. If that precedes the news, whoever changes the word sees a sleeper and takes the lock
 * before waking it; otherwise the swap fails and the worker does not sleep. The caller's wait works
 * the same way, with WAITING instead of SLEEPERS, and the last worker that leaves wakes the caller.
 *
 * Workers must not keep a process alive whose own threads have all ended, and no system reports
 * when that happens. So workers end after they have slept for a while: one of them sets QUIT, by a
 * compare-and-swap on a word without news and with nobody in a loop, and all end. A loop opens by
 * a compare-and-swap on a word without QUIT, so it either precedes that or starts new workers
 * first. */
#define ACTIVE         UINT64_C(0x0000000000000fff)
#define ACTIVE_ONE     UINT64_C(0x0000000000000001)
#define SEATS          UINT64_C(0x0000000000fff000)
#define SEATS_ONE      UINT64_C(0x0000000000001000)
#define SLEEPERS       UINT64_C(0x0000000fff000000)
#define SLEEPERS_ONE   UINT64_C(0x0000000001000000)
#define WAITING        UINT64_C(0x0000001000000000)
#define QUIT           UINT64_C(0x0000002000000000)
#define GENERATION     UINT64_C(0xffffffc000000000)
#define GENERATION_ONE UINT64_C(0x0000004000000000)
_Static_assert(TNI_POOL_THREADS_MAX <= ACTIVE, "a field of the word is too narrow");

enum {
    LINE = 128,      /* two cache lines, because processors fetch pairs */
    SPIN_NS = 50000, /* spin time before a thread sleeps; a wake-up takes as long */
    POLLS = 32,      /* polls of the word between two reads of the clock */
    PORTIONS = 16,   /* per thread: balances unequal tasks to 1/16 of its share */
    IDLE_S = 2,      /* idle time after which workers end; starting one takes about 20 us */
    NOT_STARTED = -1,
};

struct job {
    tn_task *task;
    void *user;
    uint64_t count;
    uint64_t portion; /* indices taken at a time */
    uint64_t float_mode;
};

struct tni_pool {
    /* What idle workers poll, and what they need next. The job is written only while the loop is
     * closed and no worker is active. */
    _Alignas(LINE) _Atomic uint64_t state;
    struct job job;

    /* What threads of a running loop contend for. */
    _Alignas(LINE) _Atomic uint64_t next;
    _Atomic bool occupied;

    _Alignas(LINE) tni_mutex lock; /* only for sleeping, starting and forking */
    tni_condition work;
    tni_condition idle;
    tni_pool *following; /* next in the list of pools */
    int64_t spin_ns;
    int64_t idle_ns;
    int32_t threads;
    _Atomic int32_t workers; /* NOT_STARTED, or the number of workers; kept when they end idle */
    int32_t expected;        /* workers that were started; guarded by the lock, as the next two */
    int32_t arrived;         /* those of them that use the pool */
    bool ended_idle;         /* QUIT is set and the workers are not joined */
    tni_thread handles[];
};

/* Lock order: this one first, then those of the pools in list order. */
static tni_mutex pools_lock = TNI_MUTEX_INIT;
static tni_pool *pools;

static _Thread_local bool inside;
static _Thread_local const tni_pool *occupies;            /* pool whose loop this thread called */
static _Thread_local enum { GUEST, WORKER, ORPHAN } role; /* ORPHAN: a worker in a forked child */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` has no effect on most of these */
#endif
}

bool tni_pool_inside(void)
{
    return inside;
}

void tni_pool_run_here(int64_t first, int64_t end, tn_task *task, void *user)
{
    bool outer = inside;
    inside = true;
    for (int64_t i = first; i < end; i++)
        task(user, i);
    inside = outer;
}

/* Takes indices until none are left. An orphan stops: the pool in the child no longer belongs to
 * it. */
static void run_portions(tni_pool *pool, struct job job)
{
    while (role != ORPHAN) {
        uint64_t first = atomic_fetch_add_explicit(&pool->next, job.portion, memory_order_relaxed);
        if (first >= job.count)
            break;
        uint64_t left = job.count - first;
        uint64_t end = first + (left < job.portion ? left : job.portion);
        tni_pool_run_here((int64_t)first, (int64_t)end, job.task, job.user);
    }
}

typedef bool ready_fn(uint64_t state, uint64_t seen);

static bool has_news(uint64_t state, uint64_t seen)
{
    return (state & QUIT) || (state & GENERATION) != seen;
}

static bool is_idle(uint64_t state, uint64_t seen)
{
    (void)seen;
    return (state & ACTIVE) == 0;
}

/* Measured in time, not iterations, because a pause takes from one cycle to hundreds. */
static bool spin_until(tni_pool *pool, ready_fn *ready, uint64_t seen)
{
    if (pool->spin_ns == 0)
        return false;
    int64_t end = tni_clock_ns() + pool->spin_ns;
    do {
        for (int i = 0; i < POLLS; i++) {
            if (ready(atomic_load_explicit(&pool->state, memory_order_acquire), seen))
                return true;
            pause_cpu();
        }
    } while (tni_clock_ns() < end);
    return false;
}

/* Must hold the lock. Ends all workers, unless one has not arrived yet, there is news, or a worker
 * is in a loop or may still enter it. */
static void end_idle_workers(tni_pool *pool, uint64_t seen)
{
    uint64_t state = atomic_load_explicit(&pool->state, memory_order_relaxed);
    bool ended = false;
    while (!ended && pool->arrived == pool->expected && !has_news(state, seen) &&
           (state & (ACTIVE | SEATS)) == 0)
        ended = atomic_compare_exchange_weak_explicit(&pool->state, &state, state | QUIT,
                                                      memory_order_relaxed, memory_order_relaxed);
    if (!ended)
        return;
    pool->ended_idle = true;
    pool->expected = 0;
    tni_condition_wake_all(&pool->work);
}

static void sleep_until_news(tni_pool *pool, uint64_t seen)
{
    tni_mutex_lock(&pool->lock);
    uint64_t state = atomic_load_explicit(&pool->state, memory_order_relaxed);
    while (!has_news(state, seen)) {
        if (!atomic_compare_exchange_weak_explicit(&pool->state, &state, state + SLEEPERS_ONE,
                                                   memory_order_relaxed, memory_order_relaxed))
            continue;
        do {
            if (!tni_condition_wait_for(&pool->work, &pool->lock, pool->idle_ns))
                end_idle_workers(pool, seen);
            state = atomic_load_explicit(&pool->state, memory_order_relaxed);
        } while (!has_news(state, seen));
        atomic_fetch_sub_explicit(&pool->state, SLEEPERS_ONE, memory_order_relaxed);
    }
    tni_mutex_unlock(&pool->lock);
}

/* Takes a seat in the current loop if one is left. Sets *seen to that loop's generation. */
static bool enter_loop(tni_pool *pool, uint64_t *seen)
{
    uint64_t state = atomic_load_explicit(&pool->state, memory_order_relaxed);
    do {
        *seen = state & GENERATION;
        if ((state & SEATS) == 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&pool->state, &state,
                                                    state - SEATS_ONE + ACTIVE_ONE,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

static void leave_loop(tni_pool *pool)
{
    uint64_t last = ACTIVE_ONE | WAITING;
    uint64_t state = atomic_fetch_sub_explicit(&pool->state, ACTIVE_ONE, memory_order_release);
    if ((state & (ACTIVE | WAITING)) != last)
        return;
    tni_mutex_lock(&pool->lock);
    tni_condition_wake_all(&pool->idle);
    tni_mutex_unlock(&pool->lock);
}

static void register_worker(tni_pool *pool)
{
    role = WORKER;
    tni_mutex_lock(&pool->lock);
    pool->arrived++;
    tni_condition_wake_all(&pool->idle);
    tni_mutex_unlock(&pool->lock);
}

/* Releases Tenon's data of the thread first. The pool may no longer exist when this returns. */
static void unregister_worker(tni_pool *pool)
{
    tni_thread_ends_run();
    tni_mutex_lock(&pool->lock);
    if (pool->ended_idle)
        tni_thread_detach_self();
    pool->arrived--;
    tni_condition_wake_all(&pool->idle);
    tni_mutex_unlock(&pool->lock);
}

static void run_worker(void *user)
{
    tni_pool *pool = user;
    uint64_t seen;
    register_worker(pool);
    while ((atomic_load_explicit(&pool->state, memory_order_relaxed) & QUIT) == 0) {
        if (enter_loop(pool, &seen)) {
            tni_float_mode_set(pool->job.float_mode);
            run_portions(pool, pool->job);
            if (role == ORPHAN)
                return;
            leave_loop(pool);
        }
        if (!spin_until(pool, has_news, seen))
            sleep_until_news(pool, seen);
    }
    unregister_worker(pool);
}

/* Must hold the lock. */
static void wait_until_departed(tni_pool *pool)
{
    while (pool->arrived > 0)
        tni_condition_wait(&pool->idle, &pool->lock);
}

/* Starts workers: the first time, and again after the previous ones ended. */
static int32_t create_workers(tni_pool *pool)
{
    tn_error err;
    int32_t workers;
    tni_mutex_lock(&pool->lock);
    wait_until_departed(pool);
    atomic_fetch_and_explicit(&pool->state, ~QUIT, memory_order_relaxed);
    pool->ended_idle = false;
    pool->spin_ns = pool->threads <= tni_thread_processors() ? SPIN_NS : 0;
    for (workers = 0; workers < pool->threads - 1; workers++)
        if (tni_thread_create(&pool->handles[workers], run_worker, pool, &err) != TN_OK)
            break;
    pool->expected = workers;
    atomic_store_explicit(&pool->workers, workers, memory_order_relaxed);
    tni_mutex_unlock(&pool->lock);
    if (workers < pool->threads - 1)
        tni_log(TN_LOG_WARNING, "loops run on %d of %d threads: %s", (int)workers + 1,
                (int)pool->threads, err.message);
    return workers;
}

/* Starts the workers if needed. Returns their number. */
static int32_t start_workers(tni_pool *pool)
{
    int32_t workers = atomic_load_explicit(&pool->workers, memory_order_relaxed);
    uint64_t state = atomic_load_explicit(&pool->state, memory_order_relaxed);
    bool running = workers != NOT_STARTED && (state & QUIT) == 0;
    return running ? workers : create_workers(pool);
}

/* Opens the loop for as many workers as there are portions, and wakes sleeping ones if needed.
 * Returns false if the workers have ended. */
static bool open_loop(tni_pool *pool, struct job job, uint64_t workers)
{
    uint64_t others = (job.count - 1) / job.portion; /* portions besides the caller's first one */
    uint64_t seats = others < workers ? others : workers;
    pool->job = job;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    uint64_t state = atomic_load_explicit(&pool->state, memory_order_relaxed);
    do {
        if (state & QUIT)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&pool->state, &state,
                                                    state + GENERATION_ONE + seats * SEATS_ONE,
                                                    memory_order_release, memory_order_relaxed));
    uint64_t sleepers = (state & SLEEPERS) / SLEEPERS_ONE;
    if (workers - sleepers >= seats)
        return true;
    uint64_t wanted = seats - (workers - sleepers);
    tni_mutex_lock(&pool->lock);
    tni_mutex_unlock(&pool->lock);
    if (wanted == sleepers)
        tni_condition_wake_all(&pool->work);
    else
        for (uint64_t i = 0; i < wanted; i++)
            tni_condition_wake_one(&pool->work);
    return true;
}

/* Lets no more workers in and waits for those inside. */
static void close_loop(tni_pool *pool)
{
    uint64_t state = atomic_fetch_and_explicit(&pool->state, ~SEATS, memory_order_acquire);
    if (is_idle(state, 0) || spin_until(pool, is_idle, 0))
        return;
    tni_mutex_lock(&pool->lock);
    state = atomic_fetch_or_explicit(&pool->state, WAITING, memory_order_acquire);
    while (!is_idle(state, 0)) {
        tni_condition_wait(&pool->idle, &pool->lock);
        state = atomic_load_explicit(&pool->state, memory_order_acquire);
    }
    atomic_fetch_and_explicit(&pool->state, ~WAITING, memory_order_relaxed);
    tni_mutex_unlock(&pool->lock);
}

static bool acquire_pool(tni_pool *pool)
{
    if (atomic_load_explicit(&pool->occupied, memory_order_relaxed) ||
        atomic_exchange_explicit(&pool->occupied, true, memory_order_acquire))
        return false;
    occupies = pool;
    return true;
}

static void release_pool(tni_pool *pool)
{
    occupies = NULL;
    atomic_store_explicit(&pool->occupied, false, memory_order_release);
}

/* Returns false if the workers have ended; then nothing was run. */
static bool run_shared(tni_pool *pool, int32_t workers, struct job job)
{
    job.portion = job.count / ((uint64_t)(workers + 1) * PORTIONS);
    if (job.portion == 0)
        job.portion = 1;
    job.float_mode = tni_float_mode_get();
    if (!open_loop(pool, job, (uint64_t)workers))
        return false;
    run_portions(pool, job);
    close_loop(pool);
    return true;
}

void tni_pool_run(tni_pool *pool, int64_t count, tn_task *task, void *user)
{
    const struct job job = {.task = task, .user = user, .count = (uint64_t)count};
    bool done = false;
    if (count <= 1 || pool->threads == 1 || inside || !acquire_pool(pool)) {
        tni_pool_run_here(0, count, task, user);
        return;
    }
    while (!done) {
        int32_t workers = start_workers(pool);
        done = workers == 0 || run_shared(pool, workers, job);
        if (workers == 0)
            tni_pool_run_here(0, count, task, user);
    }
    release_pool(pool);
}

int32_t tni_pool_threads(const tni_pool *pool)
{
    int32_t workers = atomic_load_explicit(&pool->workers, memory_order_relaxed);
    return workers == NOT_STARTED ? pool->threads : workers + 1;
}

/* Waits for workers that have not arrived yet: then the memory for starting them is released, and
 * does not leak in the child. */
static void before_fork(void)
{
    tni_mutex_lock(&pools_lock);
    for (tni_pool *pool = pools; pool; pool = pool->following) {
        tni_mutex_lock(&pool->lock);
        while (pool->arrived < pool->expected)
            tni_condition_wait(&pool->idle, &pool->lock);
    }
}

static void after_fork_in_parent(void)
{
    for (tni_pool *pool = pools; pool; pool = pool->following)
        tni_mutex_unlock(&pool->lock);
    tni_mutex_unlock(&pools_lock);
}

/* The child has only this thread: forgets the workers and the waiters, but not a loop that this
 * thread itself called. */
static void after_fork_in_child(void)
{
    if (role == WORKER)
        role = ORPHAN;
    for (tni_pool *pool = pools; pool; pool = pool->following) {
        atomic_fetch_and_explicit(&pool->state, GENERATION, memory_order_relaxed);
        atomic_store_explicit(&pool->workers, NOT_STARTED, memory_order_relaxed);
        atomic_store_explicit(&pool->occupied, occupies == pool, memory_order_relaxed);
        pool->expected = 0;
        pool->arrived = 0;
        pool->ended_idle = false;
        tni_condition_init(&pool->work);
        tni_condition_init(&pool->idle);
        tni_mutex_unlock(&pool->lock);
    }
    tni_mutex_unlock(&pools_lock);
}

static void watch_forks(void)
{
    static const tni_fork_hook hook = {before_fork, after_fork_in_parent, after_fork_in_child};
    tni_fork_watch(&hook);
}

void tni_pool_watch_forks(void)
{
    static tni_once once = TNI_ONCE_INIT;
    tni_once_run(&once, watch_forks);
}

tn_status tni_pool_create(int32_t threads, tni_pool **out, tn_error *err)
{
    const char *where = "tni_pool_create";
    size_t bytes;
    if (threads < 1 || threads > TNI_POOL_THREADS_MAX)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "threads: expected 1 to %d, got %d",
                       (int)TNI_POOL_THREADS_MAX, (int)threads);
    if (!tni_mul_size((size_t)threads - 1, sizeof(tni_thread), &bytes) ||
        !tni_add_size(bytes, sizeof(tni_pool), &bytes))
        return tni_no_memory(err, where, "a pool");
    tni_pool *pool = tni_alloc_aligned(bytes, LINE);
    if (!pool)
        return tni_no_memory(err, where, "a pool");
    memset(pool, 0, bytes);
    pool->threads = threads;
    pool->idle_ns = IDLE_S * INT64_C(1000000000);
    atomic_init(&pool->workers, NOT_STARTED);
    tni_mutex_init(&pool->lock);
    tni_condition_init(&pool->work);
    tni_condition_init(&pool->idle);
    tni_pool_watch_forks();
    tni_mutex_lock(&pools_lock);
    pool->following = pools;
    pools = pool;
    tni_mutex_unlock(&pools_lock);
    *out = pool;
    return TN_OK;
}

void tni_pool_idle_set(tni_pool *pool, int64_t ns)
{
    pool->idle_ns = ns;
}

static void unlink_pool(tni_pool *pool)
{
    tni_mutex_lock(&pools_lock);
    tni_pool **link = &pools;
    while (*link != pool)
        link = &(*link)->following;
    *link = pool->following;
    tni_mutex_unlock(&pools_lock);
}

void tni_pool_destroy(tni_pool *pool)
{
    if (!pool)
        return;
    unlink_pool(pool);
    tni_mutex_lock(&pool->lock);
    atomic_fetch_or_explicit(&pool->state, QUIT, memory_order_relaxed);
    tni_condition_wake_all(&pool->work);
    wait_until_departed(pool);
    int32_t joinable = pool->ended_idle ? 0 : pool->expected;
    tni_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < joinable; i++)
        tni_thread_join(pool->handles[i]);
    tni_condition_destroy(&pool->work);
    tni_condition_destroy(&pool->idle);
    tni_mutex_destroy(&pool->lock);
    tni_release(pool);
}
