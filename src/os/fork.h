/* fork() with threads about: what holds a lock or owns threads says here how to come out of it.
 * The child has only the thread that forked, so pools are forgotten and rebuilt at the next use. */
#ifndef TNI_OS_FORK_H
#define TNI_OS_FORK_H

/* Any may be NULL. `before` runs in the parent, newest hook first; the others oldest first. */
typedef struct tni_fork_hook {
    void (*before)(void);
    void (*parent)(void);
    void (*child)(void);
} tni_fork_hook;

/* Registers a static hook, once each; at most 32 hooks. Does nothing on systems without fork().
 * The first time, called with no lock held that a hook's `before` takes: a fork may be waiting for it.
 * Thread-safety: Safe. */
void tni_fork_watch(const tni_fork_hook *hook);

/* 0 in the process that first used this, one more after every fork() since then. */
unsigned tni_fork_generation(void);

#endif
