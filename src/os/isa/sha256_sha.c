#include "sha256_blocks.h"

#include <immintrin.h>

typedef __m128i vector;

/* The state in the layout of sha256rnds2: words a, b, e, f and c, d, g, h, the first in the highest
 * lane. */
typedef struct lanes {
    vector abef, cdgh;
} lanes;

static inline lanes pack(const uint32_t state[8])
{
    __m128i dcba = _mm_loadu_si128((const __m128i *)&state[0]);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)&state[4]);
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    return (lanes){_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xF0)};
}

static inline void unpack(lanes s, uint32_t state[8])
{
    __m128i feba = _mm_shuffle_epi32(s.abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(s.cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)&state[0], _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)&state[4], _mm_alignr_epi8(dchg, feba, 8));
}

static inline __m128i load(const unsigned char *from)
{
    const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), big_endian);
}

static inline lanes four_rounds(lanes s, __m128i words, const uint32_t *constants)
{
    __m128i sum = _mm_add_epi32(words, _mm_load_si128((const __m128i *)constants));
    s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, sum);
    s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(sum, 0x0E));
    return s;
}

/* Computes the four schedule words that follow the sixteen in w0 to w3. */
static inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
    return _mm_sha256msg2_epu32(sum, w3);
}

static inline lanes add(lanes a, lanes b)
{
    return (lanes){_mm_add_epi32(a.abef, b.abef), _mm_add_epi32(a.cdgh, b.cdgh)};
}

#include "sha256_fold_inc.h"

void tni_sha256_blocks_sha(uint32_t state[8], const unsigned char *data, size_t count)
{
    lanes s = pack(state);
    for (; count > 0; count--, data += TNI_SHA256_BLOCK)
        s = fold(s, data);
    unpack(s, state);
}
