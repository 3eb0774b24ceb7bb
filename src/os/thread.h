/* Locks and threads. Thin over pthreads, which mingw has too, so that no other floor names them.
 * Thread-safety: what it is for. */
#ifndef TNI_OS_THREAD_H
#define TNI_OS_THREAD_H

#include "tenon/base.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct tni_mutex {
    pthread_mutex_t native;
} tni_mutex;
#define TNI_MUTEX_INIT            \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }

typedef struct tni_condition {
    pthread_cond_t native;
} tni_condition;
#define TNI_CONDITION_INIT       \
    {                            \
        PTHREAD_COND_INITIALIZER \
    }

typedef struct tni_once {
    pthread_once_t native;
} tni_once;
#define TNI_ONCE_INIT     \
    {                     \
        PTHREAD_ONCE_INIT \
    }

typedef struct tni_thread {
    pthread_t native;
    void (*run)(void *user);
    void *user;
} tni_thread;

/* A dynamic one; statics use the INIT macros. Destroying needs no one inside. */
void tni_mutex_init(tni_mutex *mutex);
void tni_mutex_destroy(tni_mutex *mutex);
void tni_mutex_lock(tni_mutex *mutex);
void tni_mutex_unlock(tni_mutex *mutex);
void tni_condition_init(tni_condition *condition);
void tni_condition_destroy(tni_condition *condition);
void tni_condition_wait(tni_condition *condition, tni_mutex *mutex);
/* As tni_condition_wait, for at most `ns`; returns false when they have passed. Only for a condition that
 * tni_condition_init made. */
bool tni_condition_wait_for(tni_condition *condition, tni_mutex *mutex, int64_t ns);
void tni_condition_wake_one(tni_condition *condition);
void tni_condition_wake_all(tni_condition *condition);
void tni_once_run(tni_once *once, void (*run)(void));

/* TN_OUT_OF_MEMORY or TN_BUSY when the system gives no thread, with its errno. The thread reads `*out`,
 * which stays where it is until the thread has been joined. It has 512 KiB of stack or more. Signals are blocked in it, as they are the
 * program's business; only those for its own faults (SIGSEGV and the like) are not. */
tn_status tni_thread_create(tni_thread *out, void (*run)(void *), void *user, tn_error *err);
void tni_thread_join(tni_thread thread);

/* The calling thread, which tni_thread_create made, will not be joined. */
void tni_thread_detach_self(void);

/* Something to be done on a thread when it ends; `run` may release it. */
typedef struct tni_thread_end {
    void (*run)(struct tni_thread_end *end);
    struct tni_thread_end *next; /* this file's */
} tni_thread_end;

/* For the calling thread. Nothing is run when the process ends, so for the thread of main never.
 * False when the system has no room for it. Removing is for the same thread, before it ends. */
bool tni_thread_end_add(tni_thread_end *end);
void tni_thread_end_remove(tni_thread_end *end);

/* Runs now what was added for the calling thread, which is about to end. */
void tni_thread_ends_run(void);

/* A number that no other living thread of this process has. */
uint64_t tni_thread_id(void);

/* How many processors the calling thread, and those it makes, may run on, by affinity; at least
 * 1. */
int32_t tni_thread_processors(void);

#endif
