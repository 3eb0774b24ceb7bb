#include "fork_gate.h"

#if defined(_WIN32)

void tni_fork_gate_watch(void) {}
void tni_fork_gate_enter(void) {}
void tni_fork_gate_leave(void) {}

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { LINE = 128, COUNTERS = 64 };

/* Threads inside, counted in several places so that threads rarely share a cache line. */
static struct counter {
    _Alignas(LINE) _Atomic unsigned inside;
} counters[COUNTERS];
static _Atomic unsigned assigned;

/* Held by the thread that forks, from `close_gate` to `open_gate`, with how often it closed the gate. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool closed;
static _Atomic uintptr_t closer;
static unsigned closings;

/* State of a thread: the number of its counter, and its nesting depth inside. Stored under a
 * thread-specific key, since the loader reserves little space for thread-local variables of
 * libraries. Without a key, all threads share a counter, and fork() also waits for the thread that
 * calls it. */
typedef union own {
    void *kept;
    struct {
        uint16_t counter; /* from 1; 0: not assigned yet */
        uint16_t depth;
    };
} own;
static pthread_key_t key;
static bool has_key;

static own own_get(void)
{
    own mine = {.kept = has_key ? pthread_getspecific(key) : NULL};
    if (mine.counter == 0)
        mine.counter = 1 + (has_key ? (uint16_t)(atomic_fetch_add(&assigned, 1) % COUNTERS) : 0);
    return mine;
}

static void own_set(own mine)
{
    if (has_key)
        (void)pthread_setspecific(key, mine.kept);
}

static void wait_until_left(const struct counter *at, unsigned expected)
{
    enum { YIELDS = 100, PAUSE_NS = 20000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0; atomic_load(&at->inside) > expected; i++) {
        if (i < YIELDS)
            (void)sched_yield();
        else
            (void)nanosleep(&pause, NULL);
    }
}

/* These two functions run once for each library that was opened; only the first and the last call
 * of a fork have effect. */
static void close_gate(void)
{
    const uintptr_t self = (uintptr_t)pthread_self();
    const own mine = own_get();
    if (atomic_load(&closer) != self) {
        (void)pthread_mutex_lock(&gate);
        atomic_store(&closer, self);
        atomic_store(&closed, true);
        for (unsigned i = 0; i < COUNTERS; i++)
            wait_until_left(&counters[i], i + 1 == mine.counter && mine.depth > 0);
    }
    closings++;
}

static void open_gate(void)
{
    if (atomic_load(&closer) != (uintptr_t)pthread_self() || --closings > 0)
        return;
    atomic_store(&closed, false);
    atomic_store(&closer, 0);
    (void)pthread_mutex_unlock(&gate);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, NULL) == 0;
}

void tni_fork_gate_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_key);
    (void)pthread_atfork(close_gate, open_gate, open_gate);
}

static void wait_until_open(void)
{
    (void)pthread_mutex_lock(&gate);
    (void)pthread_mutex_unlock(&gate);
}

/* Either this thread sees that the gate is closed, or the thread that closes it sees this thread's
 * count. */
void tni_fork_gate_enter(void)
{
    own mine = own_get();
    struct counter *counter = &counters[mine.counter - 1];
    bool nested = mine.depth++ > 0;
    own_set(mine);
    while (!nested) {
        (void)atomic_fetch_add(&counter->inside, 1);
        if (!atomic_load(&closed))
            break;
        (void)atomic_fetch_sub(&counter->inside, 1);
        wait_until_open();
    }
}

void tni_fork_gate_leave(void)
{
    own mine = own_get();
    bool nested = has_key && --mine.depth > 0;
    own_set(mine);
    if (!nested)
        (void)atomic_fetch_sub_explicit(&counters[mine.counter - 1].inside, 1,
                                        memory_order_release);
}

#endif
