#include "latch.h"

#include "os/clock.h"

void tni_latch_wait(tni_latch *latch)
{
    enum { LOOKS = 200, NAP_NS = 20000 };
    do {
        for (int i = 0; i < LOOKS && atomic_load_explicit(&latch->taken, memory_order_relaxed); i++)
            continue;
        if (atomic_load_explicit(&latch->taken, memory_order_relaxed))
            tni_clock_sleep_ns(NAP_NS);
    } while (atomic_exchange_explicit(&latch->taken, true, memory_order_acquire));
}
