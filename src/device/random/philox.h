/* Philox for the implementations of fills: computes once what the blocks have in common. */
#ifndef TNI_DEVICE_RANDOM_PHILOX_H
#define TNI_DEVICE_RANDOM_PHILOX_H

#include "tenon/module/philox.h"

/* Blocks that differ in the lowest word of their counters only share most of the first two rounds.
 * With p = FACTOR_0 * counter[0] and q = FACTOR_1 * (high(p) ^ mix), these end in
 *     x0 = high(q) ^ mix0, x1 = low(q), x2 = low(p) ^ mix2, x3 = word3. */
typedef struct tni_philox_start {
    uint32_t mix, mix0, mix2, word3;
} tni_philox_start;

static inline tni_philox_start tni_philox_begin(uint64_t seed, uint64_t subsequence, uint64_t block)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint64_t first = (uint64_t)TN_PHILOX_FACTOR_1 * (uint32_t)subsequence;
    uint32_t x0 = (uint32_t)(first >> 32) ^ (uint32_t)(block >> 32) ^ key0;
    uint64_t second = (uint64_t)TN_PHILOX_FACTOR_0 * x0;
    return (tni_philox_start){
        .mix = (uint32_t)(subsequence >> 32) ^ key1,
        .mix0 = (uint32_t)first ^ (key0 + TN_PHILOX_STEP_0),
        .mix2 = (uint32_t)(second >> 32) ^ (key1 + TN_PHILOX_STEP_1),
        .word3 = (uint32_t)second,
    };
}

#endif
