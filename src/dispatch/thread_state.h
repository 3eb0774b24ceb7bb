/* The thread-local state of dispatch. In a shared library, reading a thread-local variable is a
 * function call: read it once per call and pass the pointer on. */
#ifndef TNI_DISPATCH_THREAD_STATE_H
#define TNI_DISPATCH_THREAD_STATE_H

#include "os/thread.h"

#include <stdatomic.h>
#include <stdbool.h>

/* State that is kept between calls; released when the thread ends. */
typedef struct tni_thread_kept {
    tni_thread_end end;   /* must be first: the thread-end callback gets a pointer to it */
    _Atomic int64_t hits; /* plans that this thread found; written by it alone */
    struct tni_fast_path *fast_path; /* NULL until a call is remembered */
    void (*fast_path_release)(struct tni_fast_path *fast_path);
} tni_thread_kept;

typedef struct tni_thread_state {
    tni_thread_kept *kept; /* NULL until the thread holds its first plan */
    int32_t testing;       /* number of kernel tests running on this thread: it must not wait for a
                           * test of another thread */
    bool unlocked;         /* the thread decides as if there were no lock */
} tni_thread_state;
extern _Thread_local tni_thread_state tni_thread_state_own;

#endif
