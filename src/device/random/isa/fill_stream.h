/* Non-temporal stores, for the x86 implementations: SSE2 has them, and the processor combines them
 * into whole cache lines. Static functions only. */
#ifndef TNI_DEVICE_RANDOM_ISA_FILL_STREAM_H
#define TNI_DEVICE_RANDOM_ISA_FILL_STREAM_H

#include "../fill_row.h"

#include <immintrin.h>

static inline void stream(unsigned char *out, const unsigned char *from, size_t size)
{
    for (size_t i = 0; i < size; i += STREAM)
        _mm_stream_si128((__m128i *)(void *)(out + i),
                         _mm_load_si128((const __m128i *)(const void *)(from + i)));
}

/* Non-temporal stores are weakly ordered, so fence before anyone learns that the fill is done. */
static inline void stream_end(const tni_fill_source *source)
{
    if (source->past_caches)
        _mm_sfence();
}

#endif
