#include "sha256_blocks.h"

#include <arm_neon.h>

typedef uint32x4_t vector;

typedef struct lanes {
    vector abcd, efgh;
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

static inline lanes add(lanes a, lanes b)
{
    return (lanes){vaddq_u32(a.abcd, b.abcd), vaddq_u32(a.efgh, b.efgh)};
}

#include "sha256_fold_inc.h"

void tni_sha256_blocks_arm_sha2(uint32_t state[8], const unsigned char *data, size_t count)
{
    lanes s = {vld1q_u32(&state[0]), vld1q_u32(&state[4])};
    for (; count > 0; count--, data += TNI_SHA256_BLOCK)
        s = fold(s, data);
    vst1q_u32(&state[0], s.abcd);
    vst1q_u32(&state[4], s.efgh);
}
