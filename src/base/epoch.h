/* One number for everything that a remembered call depends on besides its arguments and settings:
 * modules, devices and their losses, verdicts, times, the lock, the features of the CPU, the
 * process. Code that changes one of these calls tni_epoch_next after the change. Code that remembers
 * a result reads tni_epoch_now before computing it, and forgets the result when the number differs. */
#ifndef TNI_BASE_EPOCH_H
#define TNI_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint64_t tni_epoch;

static inline uint64_t tni_epoch_now(void)
{
    return atomic_load_explicit(&tni_epoch, memory_order_acquire);
}

static inline void tni_epoch_next(void)
{
    atomic_fetch_add_explicit(&tni_epoch, 1, memory_order_acq_rel);
}

#endif
