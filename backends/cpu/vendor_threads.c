#include "vendor_threads.h"

#include "fork_gate.h"

void tni_vendor_threads_init(tni_vendor_threads *threads)
{
    atomic_init(&threads->locked, false);
    threads->inside = 0;
    threads->before = 1;
    tni_fork_gate_watch();
}

/* Only threads that passed the gate take the lock, so no fork() finds it taken. */
static void lock(tni_vendor_threads *threads)
{
    while (atomic_exchange_explicit(&threads->locked, true, memory_order_acquire))
        ;
}

static void unlock(tni_vendor_threads *threads)
{
    atomic_store_explicit(&threads->locked, false, memory_order_release);
}

static void enter_shared(tni_vendor_threads *threads, const void *library)
{
    lock(threads);
    if (threads->inside++ == 0) {
        threads->before = threads->get(library);
        if (threads->before != 1)
            threads->set(library, 1);
    }
    unlock(threads);
}

static void leave_shared(tni_vendor_threads *threads, const void *library)
{
    lock(threads);
    if (--threads->inside == 0 && threads->before != 1)
        threads->set(library, threads->before);
    unlock(threads);
}

int tni_vendor_threads_enter(tni_vendor_threads *threads, const void *library)
{
    int before = 1;
    tni_fork_gate_enter();
    if (!threads->get)
        return before;
    if (threads->shared) {
        enter_shared(threads, library);
        return before;
    }
    before = threads->get(library);
    if (before != 1)
        threads->set(library, 1);
    return before;
}

void tni_vendor_threads_leave(tni_vendor_threads *threads, const void *library, int before)
{
    if (threads->get && threads->shared)
        leave_shared(threads, library);
    else if (threads->get && before != 1)
        threads->set(library, before);
    tni_fork_gate_leave();
}
