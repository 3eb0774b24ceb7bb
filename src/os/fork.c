#include "fork.h"

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

#else

enum { HOOKS = 32 };

/* Held from before a fork until after it, so that no hook is registered during a fork. */
static tni_mutex lock = TNI_MUTEX_INIT;
static const tni_fork_hook *hooks[HOOKS];
static _Atomic size_t count; /* incremented after the hook is stored */

static void before(void)
{
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
}

static void child(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        if (hooks[i]->child)
            hooks[i]->child();
    tni_mutex_unlock(&lock);
}

/* If pthread_atfork fails (out of memory), hooks do not run, and a child may use Tenon only if no
 * other thread was inside it at the fork. */
static void begin(void)
{
    (void)pthread_atfork(before, parent, child);
}

static void watch_forks(void)
{
    static tni_once once = TNI_ONCE_INIT;
    tni_once_run(&once, begin);
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

#endif
