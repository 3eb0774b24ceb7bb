/* Hooks around fork() in a process with threads: code that holds locks or owns threads registers
 * here how to restore its state. The child has only the thread that forked, so thread pools are
 * discarded and rebuilt at the next use. */
#ifndef TNI_OS_FORK_H
#define TNI_OS_FORK_H

#include "thread.h"

#include <stdatomic.h>

/* Any function may be NULL. `before` runs in the parent, newest hook first; the others run oldest
 * first. */
typedef struct tni_fork_hook {
    void (*before)(void);
    void (*parent)(void);
    void (*child)(void);
} tni_fork_hook;

/* Registers a static hook; registering it again has no effect. At most 32 hooks. Does nothing on
 * systems without fork(). The first call for a hook must not hold a lock that any hook's `before`
 * takes, or a concurrent fork may deadlock. Thread-safety: Safe. */
void tni_fork_watch(const tni_fork_hook *hook);

/* A static mutex that fork() takes, so that in the child it is free and its data are consistent.
 * The first use registers it, under the conditions of tni_fork_watch. A thread that holds it may
 * take only locks that were registered before it. */
typedef struct tni_fork_lock {
    tni_mutex mutex;
    tni_condition
        *condition; /* is initialized again in the child, where no thread waits on it; or NULL */
    _Atomic bool watched;
} tni_fork_lock;
#define TNI_FORK_LOCK_INIT .mutex = TNI_MUTEX_INIT

void tni_fork_lock_watch(tni_fork_lock *added); /* registers it before its first use */
void tni_fork_lock_acquire(tni_fork_lock *held);
void tni_fork_lock_release(tni_fork_lock *held);

/* Number of fork() calls between the process that first used this and the current one; 0 in the
 * former. */
unsigned tni_fork_generation(void);

/* Between the two, the calling thread loads or initializes libraries, and fork() waits for it: a
 * child crashes in a library whose constructors have not finished. `begin` waits for a fork in
 * progress. Pairs may be nested. A thread does not wait for itself. No wait exceeds 5 s, because the
 * two threads may depend on each other: through a lock of the program's log sink, or because the C
 * library (glibc before 2.36) lets no library register a fork handler during a fork. Thread-safety:
 * Safe. */
void tni_fork_loading_begin(void);
void tni_fork_loading_end(void);

#endif
