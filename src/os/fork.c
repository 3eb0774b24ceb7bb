#include "fork.h"

#include "base/epoch.h"
#include "clock.h"
#include "thread.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static _Atomic unsigned generation;

#if defined(_WIN32)

void tni_fork_watch(const tni_fork_hook *hook)
{
    (void)hook;
}

unsigned tni_fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

void tni_fork_loading_begin(void) {}
void tni_fork_loading_end(void) {}

#else

enum { HOOKS = 32 };

/* Held from before a fork until after it, so that no hook is registered during a fork. */
static tni_mutex lock = TNI_MUTEX_INIT;
static const tni_fork_hook *hooks[HOOKS];
static _Atomic size_t count; /* incremented after the hook is stored */

/* Threads that load libraries, and the nesting depth of this one. `gate` is held, and `forking` is
 * true, from before a fork until after it. The gate is closed before the lock is taken, so that a
 * loading thread may register a hook. */
static _Atomic unsigned loading;
static _Thread_local unsigned loading_depth;
static tni_mutex gate = TNI_MUTEX_INIT;
static _Atomic bool forking;

/* Sleeps a little. Returns false once 5 s have passed since the first call with *end == 0. */
static bool wait_a_little(int64_t *end)
{
    const int64_t limit_ns = 5000000000, pause_ns = 20000;
    int64_t now = tni_clock_ns();
    *end = *end ? *end : now + limit_ns;
    if (now < *end)
        tni_clock_sleep_ns(pause_ns);
    return now < *end;
}

static void close_gate(void)
{
    const unsigned own = loading_depth > 0;
    int64_t end = 0;
    tni_mutex_lock(&gate);
    atomic_store(&forking, true);
    while (atomic_load(&loading) > own && wait_a_little(&end))
        ;
}

static void open_gate(void)
{
    atomic_store(&forking, false);
    tni_mutex_unlock(&gate);
}

static void before(void)
{
    close_gate();
    tni_mutex_lock(&lock);
    for (size_t i = count; i-- > 0;)
        if (hooks[i]->before)
            hooks[i]->before();
}

static void parent(void)
{
    for (size_t i = 0; i < count; i++)
        if (hooks[i]->parent)
            hooks[i]->parent();
    tni_mutex_unlock(&lock);
    open_gate();
}

static void child(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    tni_epoch_next();
    for (size_t i = 0; i < count; i++)
        if (hooks[i]->child)
            hooks[i]->child();
    tni_mutex_unlock(&lock);
    atomic_store(&loading, loading_depth > 0); /* other threads do not exist here */
    open_gate();
}

/* If pthread_atfork fails (out of memory), hooks do not run, and a child may use Tenon only if no
 * other thread was inside it at the fork. */
static void install_hooks(void)
{
    (void)pthread_atfork(before, parent, child);
}

static void watch_forks(void)
{
    static tni_once once = TNI_ONCE_INIT;
    tni_once_run(&once, install_hooks);
}

static bool is_watched(const tni_fork_hook *hook)
{
    size_t i = 0, all = atomic_load_explicit(&count, memory_order_acquire);
    while (i < all && hooks[i] != hook)
        i++;
    return i < all;
}

void tni_fork_watch(const tni_fork_hook *hook)
{
    watch_forks();
    if (is_watched(hook))
        return;
    tni_mutex_lock(&lock);
    if (!is_watched(hook) && count < HOOKS) {
        hooks[count] = hook;
        atomic_fetch_add_explicit(&count, 1, memory_order_release);
    }
    tni_mutex_unlock(&lock);
}

unsigned tni_fork_generation(void)
{
    watch_forks();
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* Either this thread sees that a fork has begun, or the thread that forks sees this thread's
 * count. */
void tni_fork_loading_begin(void)
{
    int64_t end = 0;
    watch_forks();
    if (loading_depth++ > 0)
        return;
    (void)atomic_fetch_add(&loading, 1);
    while (atomic_load(&forking)) {
        (void)atomic_fetch_sub(&loading, 1);
        bool waits = wait_a_little(&end);
        (void)atomic_fetch_add(&loading, 1);
        if (!waits)
            break;
    }
}

void tni_fork_loading_end(void)
{
    if (--loading_depth == 0)
        (void)atomic_fetch_sub(&loading, 1);
}

#endif
