/* The thread's rounding and denormal modes, on processors that keep them in one register.
 * Thread-safety: Safe. */
#ifndef TNI_OS_FLOAT_MODE_H
#define TNI_OS_FLOAT_MODE_H

#include <stdint.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static inline uint64_t tni_float_mode_get(void)
{
#if defined(__SSE__)
    return _mm_getcsr() & ~0x3fu; /* without the sticky exception flags */
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
#else
    return 0;
#endif
}

static inline void tni_float_mode_set(uint64_t mode)
{
    if (mode == tni_float_mode_get())
        return;
#if defined(__SSE__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

#endif
