#include "fill_stream.h"

typedef __m512i vector;

/* Eight blocks, with a word of each in the lower half of a lane; the upper halves are undefined. */
typedef struct eight {
    __m512i x0, x1, x2, x3;
} eight;

static inline __m512i spread(uint32_t word)
{
    return _mm512_set1_epi64(word);
}

#include "fill_plan_inc.h"

static inline __m512i times0(__m512i x)
{
    return _mm512_mul_epu32(x, spread(TN_PHILOX_FACTOR_0));
}

static inline __m512i times1(__m512i x)
{
    return _mm512_mul_epu32(x, spread(TN_PHILOX_FACTOR_1));
}

/* Moves the upper half down, in two ways: shifts and shuffles use different execution units. */
static inline __m512i high(__m512i product)
{
    return _mm512_srli_epi64(product, 32);
}

static inline __m512i high_too(__m512i product)
{
    return _mm512_shuffle_epi32(product, _MM_PERM_DDBB);
}

static inline __m512i xor3(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}

/* The first two rounds. The lane order is the one that store() needs. */
static inline eight start(const struct plan *plan, uint32_t low)
{
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    __m512i p = times0(_mm512_add_epi32(spread(low), order));
    __m512i q = times1(_mm512_xor_si512(high(p), plan->mix));
    return (eight){_mm512_xor_si512(high_too(q), plan->mix0), q, _mm512_xor_si512(p, plan->mix2),
                   plan->word3};
}

static inline eight step(eight x, __m512i key0, __m512i key1)
{
    __m512i p = times0(x.x0), q = times1(x.x2);
    return (eight){xor3(high(q), x.x1, key0), q, xor3(high_too(p), x.x3, key1), p};
}

/* The last round, which leaves two words in a lane, and the stores. */
static inline void store(eight x, const struct plan *plan, uint32_t *words)
{
    const __mmask16 lower = 0x5555;
    __m512i key0 = plan->key0[TN_PHILOX_ROUNDS - 1], key1 = plan->key1[TN_PHILOX_ROUNDS - 1];
    __m512i p = _mm512_rol_epi64(times0(x.x0), 32);
    __m512i q = _mm512_shuffle_epi32(times1(x.x2), _MM_PERM_CDAB);
    q = _mm512_mask_ternarylogic_epi32(q, lower, x.x1, key0, 0x96);
    p = _mm512_mask_ternarylogic_epi32(p, lower, x.x3, key1, 0x96);
    _mm512_store_si512(words, _mm512_unpacklo_epi64(q, p));
    _mm512_store_si512(words + 16, _mm512_unpackhi_epi64(q, p));
}

/* Four at a time, to hide the latency of the multiplications. */
static void make_words(const void *how, uint64_t block, uint32_t words[GROUP])
{
    const struct plan *plan = how;
    uint32_t low = (uint32_t)block;
    eight a = start(plan, low), b = start(plan, low + 8);
    eight c = start(plan, low + 16), d = start(plan, low + 24);
    for (int i = 2; i < TN_PHILOX_ROUNDS - 1; i++) {
        __m512i key0 = plan->key0[i], key1 = plan->key1[i];
        a = step(a, key0, key1);
        b = step(b, key0, key1);
        c = step(c, key0, key1);
        d = step(d, key0, key1);
    }
    store(a, plan, words);
    store(b, plan, words + 32);
    store(c, plan, words + 64);
    store(d, plan, words + 96);
}

void tni_fill_avx512(const tni_fill_source *source, int kind, size_t count, unsigned char *out)
{
    struct plan plan = plan_of(source);
    fill_groups(make_words, &plan, stream, source, kind, count, out);
    stream_end(source);
}
