/* The thread-local state of dispatch. A look-up of a thread-local variable is a function call in a shared
 * library: do it once on the path of a call and pass the pointer on. */
#ifndef TNI_DISPATCH_FRONT_H
#define TNI_DISPATCH_FRONT_H

#include "os/thread.h"

#include <stdbool.h>

/* What it keeps between calls; it ends with the thread. */
typedef struct tni_kept_front {
    tni_thread_end end;          /* first: it is what the end of the thread is given */
    struct tni_recalls *recalls; /* NULL until a call is remembered */
} tni_kept_front;

typedef struct tni_front {
    tni_kept_front *kept; /* NULL until the thread has a plan of its own */
    int32_t testing;      /* kernels under test run on it: it may not wait for another one's test */
    bool unlocked;        /* it decides as if there were no lock */
} tni_front;
extern _Thread_local tni_front tni_front_own;

#endif
