#include "fill_stream.h"

typedef __m256i vector;

/* Four blocks, with a word of each in the lower half of a lane; the upper halves are undefined. */
typedef struct four {
    __m256i x0, x1, x2, x3;
} four;

static inline __m256i spread(uint32_t word)
{
    return _mm256_set1_epi64x(word);
}

#include "fill_plan_inc.h"

static inline __m256i times0(__m256i x)
{
    return _mm256_mul_epu32(x, spread(TN_PHILOX_FACTOR_0));
}

static inline __m256i times1(__m256i x)
{
    return _mm256_mul_epu32(x, spread(TN_PHILOX_FACTOR_1));
}

/* Moves the upper half down, in two ways: shifts and shuffles use different execution units. */
static inline __m256i high(__m256i product)
{
    return _mm256_srli_epi64(product, 32);
}

static inline __m256i high_too(__m256i product)
{
    return _mm256_shuffle_epi32(product, _MM_SHUFFLE(3, 3, 1, 1));
}

static inline __m256i xor3(__m256i a, __m256i b, __m256i c)
{
    return _mm256_xor_si256(a, _mm256_xor_si256(b, c));
}

/* The first two rounds. The lane order is the one that store() needs. */
static inline four start(const struct plan *plan, uint32_t low)
{
    const __m256i order = _mm256_setr_epi64x(0, 2, 1, 3);
    __m256i p = times0(_mm256_add_epi32(spread(low), order));
    __m256i q = times1(_mm256_xor_si256(high(p), plan->mix));
    return (four){_mm256_xor_si256(high_too(q), plan->mix0), q, _mm256_xor_si256(p, plan->mix2),
                  plan->word3};
}

static inline four step(four x, __m256i key0, __m256i key1)
{
    __m256i p = times0(x.x0), q = times1(x.x2);
    return (four){xor3(high(q), x.x1, key0), q, xor3(high_too(p), x.x3, key1), p};
}

/* The last round, which leaves two words in a lane, and the stores. */
static inline void store(four x, const struct plan *plan, uint32_t *words)
{
    __m256i key0 = plan->key0[TN_PHILOX_ROUNDS - 1], key1 = plan->key1[TN_PHILOX_ROUNDS - 1];
    four y = step(x, key0, key1);
    __m256i q = _mm256_blend_epi32(y.x0, _mm256_slli_epi64(y.x1, 32), 0xAA);
    __m256i p = _mm256_blend_epi32(y.x2, _mm256_slli_epi64(y.x3, 32), 0xAA);
    _mm256_store_si256((__m256i *)words, _mm256_unpacklo_epi64(q, p));
    _mm256_store_si256((__m256i *)(words + 8), _mm256_unpackhi_epi64(q, p));
}

/* Two at a time, to hide the latency of the multiplications. */
static void make_words(const void *how, uint64_t block, uint32_t words[GROUP])
{
    const struct plan *plan = how;
    for (uint32_t at = 0; at < GROUP_BLOCKS; at += 8) {
        uint32_t low = (uint32_t)block + at;
        four a = start(plan, low), b = start(plan, low + 4);
        for (int i = 2; i < TN_PHILOX_ROUNDS - 1; i++) {
            a = step(a, plan->key0[i], plan->key1[i]);
            b = step(b, plan->key0[i], plan->key1[i]);
        }
        store(a, plan, words + 4 * at);
        store(b, plan, words + 4 * at + 16);
    }
}

void tni_fill_avx2(const tni_fill_source *source, int kind, size_t count, unsigned char *out)
{
    struct plan plan = plan_of(source);
    fill_groups(make_words, &plan, stream, source, kind, count, out);
    stream_end(source);
}
