#include "sha256_blocks.h"

#include <arm_neon.h>

typedef struct lanes {
    uint32x4_t abcd, efgh;
} lanes;

static inline uint32x4_t load(const unsigned char *from)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(from)));
}

static inline lanes four_rounds(lanes s, uint32x4_t words, const uint32_t *constants)
{
    uint32x4_t sum = vaddq_u32(words, vld1q_u32(constants));
    return (lanes){vsha256hq_u32(s.abcd, s.efgh, sum), vsha256h2q_u32(s.efgh, s.abcd, sum)};
}

/* Computes the four schedule words that follow the sixteen in w0 to w3. */
static inline uint32x4_t next_words(uint32x4_t w0, uint32x4_t w1, uint32x4_t w2, uint32x4_t w3)
{
    return vsha256su1q_u32(vsha256su0q_u32(w0, w1), w2, w3);
}

static inline lanes fold(lanes s, const unsigned char *data)
{
    const uint32_t *k = tni_sha256_constants;
    lanes before = s;
    uint32x4_t w0 = load(data), w1 = load(data + 16), w2 = load(data + 32), w3 = load(data + 48);
    for (int i = 0; i < 3; i++, k += 16) {
        s = four_rounds(s, w0, k);
        w0 = next_words(w0, w1, w2, w3);
        s = four_rounds(s, w1, k + 4);
        w1 = next_words(w1, w2, w3, w0);
        s = four_rounds(s, w2, k + 8);
        w2 = next_words(w2, w3, w0, w1);
        s = four_rounds(s, w3, k + 12);
        w3 = next_words(w3, w0, w1, w2);
    }
    s = four_rounds(s, w0, k);
    s = four_rounds(s, w1, k + 4);
    s = four_rounds(s, w2, k + 8);
    s = four_rounds(s, w3, k + 12);
    return (lanes){vaddq_u32(s.abcd, before.abcd), vaddq_u32(s.efgh, before.efgh)};
}

void tni_sha256_blocks_arm_sha2(uint32_t state[8], const unsigned char *data, size_t count)
{
    lanes s = {vld1q_u32(&state[0]), vld1q_u32(&state[4])};
    for (; count > 0; count--, data += TNI_SHA256_BLOCK)
        s = fold(s, data);
    vst1q_u32(&state[0], s.abcd);
    vst1q_u32(&state[4], s.efgh);
}
