/* Overhead of a parallel loop. */
#include "harness.h"

#include "os/thread.h"
#include "tenon/parallel.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* The part of the rival's interface that is used. */
typedef void rival_task(void *user, size_t index);
static struct {
    void *(*create)(size_t threads);
    void (*destroy)(void *pool);
    void (*run)(void *pool, rival_task *task, void *user, size_t count, uint32_t flags);
    void *pool;
} rival;

static bool rival_open(void)
{
    void *library = dlopen("libpthreadpool.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&rival.create = dlsym(library, "pthreadpool_create");
    *(void **)&rival.destroy = dlsym(library, "pthreadpool_destroy");
    *(void **)&rival.run = dlsym(library, "pthreadpool_parallelize_1d");
    return rival.create && rival.destroy && rival.run;
}

static void rival_begin(void *user)
{
    (void)user;
    rival.pool = rival.create(2);
}

static void rival_end(void *user)
{
    (void)user;
    rival.destroy(rival.pool);
}

static void ours_begin(void *user)
{
    (void)user;
    (void)tn_parallel_threads_set(2, NULL);
}

static void ours_end(void *user)
{
    (void)user;
    (void)tn_parallel_threads_set(0, NULL);
}

static void empty_task(void *user, int64_t index)
{
    (void)user;
    (void)index;
}

static void rival_empty_task(void *user, size_t index)
{
    (void)user;
    (void)index;
}

static void ours_empty(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        tn_parallel_for(2, empty_task, user);
}

static void rival_empty(void *user, int64_t times)
{
    for (int64_t i = 0; i < times; i++)
        rival.run(rival.pool, rival_empty_task, user, 2, 0);
}

/* Two tasks that wait for each other: one thread cannot run both. */
static _Atomic int64_t met;

static void meet_task(void *user, int64_t index)
{
    (void)index;
    int64_t both = *(int64_t *)user;
    atomic_fetch_add(&met, 1);
    while (atomic_load_explicit(&met, memory_order_acquire) < both) {
    }
}

static void rival_meet_task(void *user, size_t index)
{
    meet_task(user, (int64_t)index);
}

static void ours_meet(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        int64_t both = atomic_load(&met) + 2;
        tn_parallel_for(2, meet_task, &both);
    }
}

static void rival_meet(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 0; i < times; i++) {
        int64_t both = atomic_load(&met) + 2;
        rival.run(rival.pool, rival_meet_task, &both, 2, 0);
    }
}

/* The calibrator: one round trip of a message to another thread, the lower limit of this
 * machine. */
static struct {
    _Atomic int64_t asked;
    _Alignas(128) _Atomic int64_t answered;
    tni_thread thread;
} talk;

static void answer(void *user)
{
    int64_t now = 0;
    (void)user;
    while (now >= 0) {
        now = atomic_load_explicit(&talk.asked, memory_order_acquire);
        atomic_store_explicit(&talk.answered, now, memory_order_release);
    }
}

static void talk_begin(void *user)
{
    atomic_store(&talk.asked, 0);
    (void)tni_thread_create(&talk.thread, answer, user, NULL);
}

static void talk_end(void *user)
{
    (void)user;
    atomic_store(&talk.asked, -1);
    tni_thread_join(talk.thread);
}

static void ask(void *user, int64_t times)
{
    (void)user;
    for (int64_t i = 1; i <= times; i++) {
        atomic_store_explicit(&talk.asked, i, memory_order_release);
        while (atomic_load_explicit(&talk.answered, memory_order_acquire) != i) {
        }
    }
}

int main(void)
{
    bool there = rival_open();
    const char *name = there ? "pthreadpool" : "pthreadpool (Debian: libpthreadpool0)";
    bench_side calibrators[] = {{.name = "a word to another thread and back",
                                 .run = ask,
                                 .begin = talk_begin,
                                 .end = talk_end},
                                {.name = NULL}};
    bench_figure empty = {
        .name = "pool dispatch of an empty task on 2 threads",
        .kind = BENCH_TIME,
        .aim = 3,
        .unit = "us",
        .ours = {.name = "tenon", .run = ours_empty, .begin = ours_begin, .end = ours_end},
        .rival = {.name = name,
                  .run = there ? rival_empty : NULL,
                  .begin = rival_begin,
                  .end = rival_end},
        .beside = calibrators,
    };
    bench_figure both = empty;
    both.name = "the same when neither thread may do both";
    both.ours.run = ours_meet;
    both.rival.run = there ? rival_meet : NULL;
    if (tni_thread_processors() < 2) {
        printf("the pool's figures need two processors; there is one\n");
        return bench_end();
    }
    bench_run(&empty);
    bench_run(&both);
    return bench_end();
}
