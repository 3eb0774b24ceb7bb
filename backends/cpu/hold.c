#include "hold.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

/* From 1; another one in every child. */
static _Atomic unsigned process = 1;

#if defined(_WIN32)

static void watch_forks(void) {}

#else

static void in_child(void)
{
    (void)atomic_fetch_add_explicit(&process, 1, memory_order_relaxed);
}

/* Without memory for it, forks are not seen: then a child waits where its parent's threads were. */
static void watch_forks(void)
{
    static atomic_flag watched = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&watched))
        (void)pthread_atfork(NULL, NULL, in_child);
}

#endif

void tni_hold_begin(tni_hold *hold)
{
    atomic_init(&hold->owner, 0);
    hold->before = 1;
    if (hold->shared)
        watch_forks();
}

/* A lock that a thread of another process holds is free: fork() left that thread behind. */
static void lock(tni_hold *hold)
{
    unsigned mine = atomic_load_explicit(&process, memory_order_relaxed), seen = 0;
    while (!atomic_compare_exchange_weak_explicit(&hold->owner, &seen, mine, memory_order_acquire,
                                                  memory_order_relaxed)) {
        if (seen == mine)
            seen = 0;
    }
    if (hold->process != mine) {
        hold->process = mine;
        hold->inside = 0;
    }
}

static void unlock(tni_hold *hold)
{
    atomic_store_explicit(&hold->owner, 0, memory_order_release);
}

/* `before` is written before the number is changed, and forgotten after it is given back: wherever a fork
 * cuts this, the child finds either a number that is not 1, or what it was. */
static void enter_shared(tni_hold *hold, const void *library)
{
    lock(hold);
    if (hold->inside++ == 0) {
        int now = hold->get(library);
        if (now != 1) {
            hold->before = now;
            hold->set(library, 1);
        }
    }
    unlock(hold);
}

static void leave_shared(tni_hold *hold, const void *library)
{
    lock(hold);
    if (hold->inside > 0 && --hold->inside == 0 && hold->before != 1) {
        hold->set(library, hold->before);
        hold->before = 1;
    }
    unlock(hold);
}

int tni_hold_enter(tni_hold *hold, const void *library)
{
    int before = 1;
    if (!hold->get)
        return before;
    if (hold->shared) {
        enter_shared(hold, library);
        return before;
    }
    before = hold->get(library);
    if (before != 1)
        hold->set(library, 1);
    return before;
}

void tni_hold_leave(tni_hold *hold, const void *library, int before)
{
    if (!hold->get)
        return;
    if (hold->shared)
        leave_shared(hold, library);
    else if (before != 1)
        hold->set(library, before);
}
