/* A lock that is held for a few instructions only. An uncontended lock and unlock costs half of
 * what a mutex costs in a multi-threaded process. A waiter that spins for long sleeps, because the
 * holder may have been descheduled. A zeroed latch is unlocked. */
#ifndef TNI_DEVICE_LATCH_H
#define TNI_DEVICE_LATCH_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct tni_latch {
    _Atomic bool taken;
} tni_latch;

void tni_latch_wait(tni_latch *latch); /* returns once the caller holds it */

static inline void tni_latch_lock(tni_latch *latch)
{
    if (atomic_exchange_explicit(&latch->taken, true, memory_order_acquire))
        tni_latch_wait(latch);
}

static inline void tni_latch_unlock(tni_latch *latch)
{
    atomic_store_explicit(&latch->taken, false, memory_order_release);
}

#endif
