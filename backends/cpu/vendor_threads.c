#include "vendor_threads.h"

#include "fork_gate.h"

void tni_hold_begin(tni_hold *hold)
{
    atomic_init(&hold->locked, false);
    hold->inside = 0;
    hold->before = 1;
    tni_fork_gate_watch();
}

/* Only threads that passed the gate take the lock, so no fork() finds it taken. */
static void lock(tni_hold *hold)
{
    while (atomic_exchange_explicit(&hold->locked, true, memory_order_acquire))
        ;
}

static void unlock(tni_hold *hold)
{
    atomic_store_explicit(&hold->locked, false, memory_order_release);
}

static void enter_shared(tni_hold *hold, const void *library)
{
    lock(hold);
    if (hold->inside++ == 0) {
        hold->before = hold->get(library);
        if (hold->before != 1)
            hold->set(library, 1);
    }
    unlock(hold);
}

static void leave_shared(tni_hold *hold, const void *library)
{
    lock(hold);
    if (--hold->inside == 0 && hold->before != 1)
        hold->set(library, hold->before);
    unlock(hold);
}

int tni_hold_enter(tni_hold *hold, const void *library)
{
    int before = 1;
    tni_fork_gate_enter();
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
    if (hold->get && hold->shared)
        leave_shared(hold, library);
    else if (hold->get && before != 1)
        hold->set(library, before);
    tni_fork_gate_leave();
}
