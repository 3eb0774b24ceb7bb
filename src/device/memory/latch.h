/* A lock that is held for a few instructions. Taking and leaving it free costs half of what a mutex
 * costs in a process with threads; whoever finds it taken for long sleeps, as its holder may be off
 * the processor. Zeroed is free. */
#ifndef TNI_DEVICE_LATCH_H
#define TNI_DEVICE_LATCH_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct tni_latch {
    _Atomic bool taken;
} tni_latch;

void tni_latch_wait(tni_latch *latch); /* until it is the caller's */

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
