/* What the suites of loops share: tasks that notice what goes wrong, and threads that call loops.
 * A pool of NULL means the process's. */
#ifndef TENON_TEST_LOOPS_H
#define TENON_TEST_LOOPS_H

#include "test.h"

#include "os/clock.h"
#include "os/pool.h"
#include "os/thread.h"

#include <stdatomic.h>

static inline tni_pool *pool_of(int32_t threads)
{
    tni_pool *pool = NULL;
    assert_int_equal(tni_pool_create(threads, &pool, NULL), TN_OK);
    return pool;
}

static inline void run_on(tni_pool *pool, int64_t count, tn_task *task, void *user)
{
    if (pool)
        tni_pool_run(pool, count, task, user);
    else
        tn_parallel_for(count, task, user);
}

/* How often each index ran; one more than there are, to catch an index too many. */
struct marks {
    int64_t count;
    _Atomic uint8_t *seen;
};

static inline struct marks marks_of(int64_t count)
{
    return (struct marks){count, calloc((size_t)count + 1, 1)};
}

static inline void marks_release(struct marks *marks)
{
    free(marks->seen);
}

static inline void mark(void *user, int64_t index)
{
    struct marks *marks = user;
    atomic_fetch_add_explicit(&marks->seen[index], 1, memory_order_relaxed);
}

static inline bool each_once(const struct marks *marks)
{
    for (int64_t i = 0; i < marks->count; i++)
        if (atomic_load_explicit(&marks->seen[i], memory_order_relaxed) != 1)
            return false;
    return atomic_load_explicit(&marks->seen[marks->count], memory_order_relaxed) == 0;
}

/* No assertion, as threads and children may not fail one. */
static inline bool loop_is_right(tni_pool *pool, int64_t count)
{
    struct marks marks = marks_of(count);
    if (!marks.seen)
        return false;
    run_on(pool, count, mark, &marks);
    bool right = each_once(&marks);
    marks_release(&marks);
    return right;
}

/* A task that ends only when as many as are expected have begun: a loop of it ends only if so many
 * threads take part. */
struct meeting {
    int expected;
    _Atomic int come;
};

static inline void meet(void *user, int64_t index)
{
    struct meeting *meeting = user;
    (void)index;
    atomic_fetch_add(&meeting->come, 1);
    while (atomic_load(&meeting->come) < meeting->expected)
        tni_clock_sleep_ns(1000);
}

static inline void assert_threads_come(tni_pool *pool, int threads)
{
    struct meeting meeting = {.expected = threads};
    run_on(pool, threads, meet, &meeting);
    assert_int_equal(atomic_load(&meeting.come), threads);
}

/* Loops inside tasks: all of each on the thread of its task. */
struct nest {
    tni_pool *inner;
    struct marks marks;
    _Atomic int strayed;
};

struct nested {
    struct nest *nest;
    uint64_t thread;
    int64_t base;
};

enum { INNER = 13, OUTER = 50 };

static inline void inner_task(void *user, int64_t index)
{
    struct nested *nested = user;
    mark(&nested->nest->marks, nested->base + index);
    if (tni_thread_id() != nested->thread || !tni_pool_inside())
        atomic_store(&nested->nest->strayed, 1);
}

static inline void outer_task(void *user, int64_t index)
{
    struct nest *nest = user;
    struct nested nested = {nest, tni_thread_id(), index * INNER};
    run_on(nest->inner, INNER, inner_task, &nested);
    if (!tni_pool_inside())
        atomic_store(&nest->strayed, 1);
}

static inline void assert_nested(tni_pool *outer, tni_pool *inner)
{
    struct nest nest = {.inner = inner, .marks = marks_of(OUTER * INNER)};
    run_on(outer, OUTER, outer_task, &nest);
    assert_true(each_once(&nest.marks));
    assert_int_equal(atomic_load(&nest.strayed), 0);
    assert_false(tni_pool_inside());
    marks_release(&nest.marks);
}

/* Threads that call loops until they are stopped, and check each. A fork while they run meets no
 * thread that begins, ends or allocates, as not every sanitizer can bear that. */
enum { CALLERS = 8, CALLED_MOST = 97 };

struct caller {
    tni_pool *pool;
    tni_thread thread;
    _Atomic int stop;
    _Atomic int called;
    _Atomic int right;
    _Atomic uint8_t seen[CALLED_MOST + 1];
};

static inline void call_loops(void *user)
{
    struct caller *caller = user;
    while (!atomic_load(&caller->stop)) {
        struct marks marks = {1 + atomic_load(&caller->called) % CALLED_MOST, caller->seen};
        for (int64_t k = 0; k <= marks.count; k++)
            atomic_store_explicit(&marks.seen[k], 0, memory_order_relaxed);
        run_on(caller->pool, marks.count, mark, &marks);
        atomic_fetch_add(&caller->right, each_once(&marks));
        atomic_fetch_add(&caller->called, 1);
    }
}

/* Returns when every caller has called as many loops. */
static inline void callers_reach(const struct caller callers[CALLERS], int loops)
{
    for (int i = 0; i < CALLERS; i++)
        while (atomic_load(&callers[i].called) < loops)
            tni_clock_sleep_ns(10000);
}

static inline void callers_start(struct caller callers[CALLERS], tni_pool *pool)
{
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.pool = pool};
        assert_int_equal(tni_thread_create(&callers[i].thread, call_loops, &callers[i], NULL),
                         TN_OK);
    }
    callers_reach(callers, 1);
}

static inline void callers_end(struct caller callers[CALLERS])
{
    callers_reach(callers, test_reduced() ? 300 : 3000);
    for (int i = 0; i < CALLERS; i++)
        atomic_store(&callers[i].stop, 1);
    for (int i = 0; i < CALLERS; i++)
        tni_thread_join(callers[i].thread);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(atomic_load(&callers[i].right), atomic_load(&callers[i].called));
}

/* A loop that stays in its tasks until it is let go. */
struct stay {
    tni_pool *pool;
    tni_thread thread;
    _Atomic int inside;
    _Atomic int go;
};

static inline void stay_task(void *user, int64_t index)
{
    struct stay *stay = user;
    (void)index;
    atomic_store(&stay->inside, 1);
    while (!atomic_load(&stay->go))
        tni_clock_sleep_ns(10000);
}

static inline void stay_loop(void *user)
{
    struct stay *stay = user;
    run_on(stay->pool, 2, stay_task, stay);
}

static inline void stay_begin(struct stay *stay)
{
    assert_int_equal(tni_thread_create(&stay->thread, stay_loop, stay, NULL), TN_OK);
    while (!atomic_load(&stay->inside))
        tni_clock_sleep_ns(10000);
}

static inline void stay_end(struct stay *stay)
{
    atomic_store(&stay->go, 1);
    tni_thread_join(stay->thread);
}

#endif
