/* Locks and threads. A thin layer over pthreads (available in mingw too), so that no other layer
 * uses them directly. Thread-safety: Safe, except for init and destroy of one object. */
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

/* Init and destroy are for dynamic objects; static ones use the INIT macros. Nobody may use an
 * object that is being destroyed. */
void tni_mutex_init(tni_mutex *mutex);
void tni_mutex_destroy(tni_mutex *mutex);
void tni_mutex_lock(tni_mutex *mutex);
void tni_mutex_unlock(tni_mutex *mutex);
void tni_condition_init(tni_condition *condition);
void tni_condition_destroy(tni_condition *condition);
void tni_condition_wait(tni_condition *condition, tni_mutex *mutex);
/* As tni_condition_wait, for at most `ns`; returns false if that time has passed. Only for a
 * condition initialized by tni_condition_init. */
bool tni_condition_wait_for(tni_condition *condition, tni_mutex *mutex, int64_t ns);
void tni_condition_wake_one(tni_condition *condition);
void tni_condition_wake_all(tni_condition *condition);
void tni_once_run(tni_once *once, void (*run)(void));

/* Fails with TN_OUT_OF_MEMORY or TN_BUSY and the errno if the system cannot create a thread. The
 * thread reads `*out`, which must stay in place until the thread has been joined. The stack has at
 * least 512 KiB. Signals are blocked in the thread, because they are for the program to handle;
 * only those for its own faults (SIGSEGV and the like) are not. */
tn_status tni_thread_create(tni_thread *out, void (*run)(void *), void *user, tn_error *err);
void tni_thread_join(tni_thread thread);

/* Detaches the calling thread, which tni_thread_create created: it must not be joined. */
void tni_thread_detach_self(void);

/* A function to run on a thread when it ends; `run` may release it. */
typedef struct tni_thread_end {
    void (*run)(struct tni_thread_end *end);
    struct tni_thread_end *next; /* internal to thread.c */
} tni_thread_end;

/* Add and remove for the calling thread. Nothing runs when the process ends, so never for the main
 * thread. Add returns false if the system has no room for it. Remove must be called on the same
 * thread, before it ends. */
bool tni_thread_end_add(tni_thread_end *end);
void tni_thread_end_remove(tni_thread_end *end);

/* Runs the functions added for the calling thread now; the thread must be about to end. */
void tni_thread_ends_run(void);

/* A number unique among the living threads of this process. */
uint64_t tni_thread_id(void);

/* Number of processors that the calling thread, and threads it creates, may run on by affinity; at
 * least 1. */
int32_t tni_thread_processors(void);

#endif
