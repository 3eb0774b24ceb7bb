#include "fill_row.h"

#define BYTES(name, bytes, words) bytes,
const uint8_t tni_fill_bytes[TNI_FILL_COUNT] = {TNI_FILL_LIST(BYTES)};
#define WORDS(name, bytes, words) words,
const uint8_t tni_fill_words[TNI_FILL_COUNT] = {TNI_FILL_LIST(WORDS)};

/* Does each round for all blocks in a loop, which compilers vectorize: four lanes with NEON or
 * SSE2. */
static void make_words(const void *how, uint64_t block, uint32_t words[GROUP])
{
    const tni_fill_source *source = how;
    uint32_t key0 = (uint32_t)source->seed, key1 = (uint32_t)(source->seed >> 32);
    uint32_t x0[GROUP_BLOCKS], x1[GROUP_BLOCKS], x2[GROUP_BLOCKS], x3[GROUP_BLOCKS];
    for (uint32_t i = 0; i < GROUP_BLOCKS; i++) {
        x0[i] = (uint32_t)block + i;
        x1[i] = (uint32_t)(block >> 32);
        x2[i] = (uint32_t)source->subsequence;
        x3[i] = (uint32_t)(source->subsequence >> 32);
    }
    for (int round = 0; round < TN_PHILOX_ROUNDS; round++) {
        for (int i = 0; i < GROUP_BLOCKS; i++)
            tn_philox_round(&x0[i], &x1[i], &x2[i], &x3[i], key0, key1);
        key0 += TN_PHILOX_STEP_0;
        key1 += TN_PHILOX_STEP_1;
    }
    for (int i = 0; i < GROUP_BLOCKS; i++) {
        words[4 * i] = x0[i];
        words[4 * i + 1] = x1[i];
        words[4 * i + 2] = x2[i];
        words[4 * i + 3] = x3[i];
    }
}

void tni_fill_portable(const tni_fill_source *source, int kind, size_t count, unsigned char *out)
{
    fill_groups(make_words, source, NULL, source, kind, count, out);
}
