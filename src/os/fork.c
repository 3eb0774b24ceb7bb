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

void tni_fork_lock_watch(tni_fork_lock *lock)
{
    (void)lock;
}

#else

enum { HOOKS = 32 };

/* What is registered: one of the two. */
typedef struct watched {
    const tni_fork_hook *hook;
    tni_fork_lock *lock;
} watched;

/* Held from before a fork until after it, so that no hook is registered during a fork. */
static tni_mutex lock = TNI_MUTEX_INIT;
static watched hooks[HOOKS];
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
    for (size_t i = count; i-- > 0;) {
        if (hooks[i].lock)
            tni_mutex_lock(&hooks[i].lock->mutex);
        else if (hooks[i].hook->before)
            hooks[i].hook->before();
    }
}

static void parent(void)
{
    for (size_t i = 0; i < count; i++) {
        if (hooks[i].lock)
            tni_mutex_unlock(&hooks[i].lock->mutex);
        else if (hooks[i].hook->parent)
            hooks[i].hook->parent();
    }
    tni_mutex_unlock(&lock);
    open_gate();
}

static void release_in_child(tni_fork_lock *held)
{
    if (held->condition)
        tni_condition_init(held->condition);
    tni_mutex_unlock(&held->mutex);
}

static void child(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    tni_epoch_next();
    for (size_t i = 0; i < count; i++) {
        if (hooks[i].lock)
            release_in_child(hooks[i].lock);
        else if (hooks[i].hook->child)
            hooks[i].hook->child();
    }
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

static bool is_watched(const watched *what)
{
    size_t i = 0, all = atomic_load_explicit(&count, memory_order_acquire);
    while (i < all && !(hooks[i].hook == what->hook && hooks[i].lock == what->lock))
        i++;
    return i < all;
}

static void watch(const watched *what)
{
    watch_forks();
    if (is_watched(what))
        return;
    tni_mutex_lock(&lock);
    if (!is_watched(what) && count < HOOKS) {
        hooks[count] = *what;
        atomic_fetch_add_explicit(&count, 1, memory_order_release);
    }
    tni_mutex_unlock(&lock);
}

void tni_fork_watch(const tni_fork_hook *hook)
{
    watch(&(watched){.hook = hook});
}

void tni_fork_lock_watch(tni_fork_lock *added)
{
    watch(&(watched){.lock = added});
    atomic_store_explicit(&added->watched, true, memory_order_release);
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

void tni_fork_lock_acquire(tni_fork_lock *held)
{
    if (!atomic_load_explicit(&held->watched, memory_order_acquire))
        tni_fork_lock_watch(held);
    tni_mutex_lock(&held->mutex);
}

void tni_fork_lock_release(tni_fork_lock *held)
{
    tni_mutex_unlock(&held->mutex);
}
