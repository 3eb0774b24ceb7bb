/* Philox 4x32 with 10 rounds: four random words as a function of a key and a counter, for code that
 * generates the numbers of tenon/random.h itself.
 *
 * After J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1,
 * 2, 3", SC 2011. This is the reference; faster implementations are compared with it.
 *
 * Thread-safety: functions of their arguments only. */
#ifndef TENON_MODULE_PHILOX_H
#define TENON_MODULE_PHILOX_H

#include "abi.h"

TN_BEGIN_DECLS

enum { TN_PHILOX_WORDS = 4, TN_PHILOX_ROUNDS = 10 };

#define TN_PHILOX_FACTOR_0 UINT32_C(0xD2511F53)
#define TN_PHILOX_FACTOR_1 UINT32_C(0xCD9E8D57)
#define TN_PHILOX_STEP_0   UINT32_C(0x9E3779B9) /* added to the key each round */
#define TN_PHILOX_STEP_1   UINT32_C(0xBB67AE85)

/* NVIDIA's compiler generates more than one instruction for the plain product. */
static inline uint64_t tn_philox_product(uint32_t factor, uint32_t x)
{
#ifdef __CUDA_ARCH__
    uint64_t product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(x), "r"(factor));
    return product;
#else
    return (uint64_t)factor * x;
#endif
}

static inline void tn_philox_round(uint32_t *x0, uint32_t *x1, uint32_t *x2, uint32_t *x3,
                                   uint32_t key0, uint32_t key1)
{
    uint64_t product0 = tn_philox_product(TN_PHILOX_FACTOR_0, *x0);
    uint64_t product1 = tn_philox_product(TN_PHILOX_FACTOR_1, *x2);
    *x0 = (uint32_t)(product1 >> 32) ^ *x1 ^ key0;
    *x1 = (uint32_t)product1;
    *x2 = (uint32_t)(product0 >> 32) ^ *x3 ^ key1;
    *x3 = (uint32_t)product0;
}

static inline void tn_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    uint32_t key0 = key[0], key1 = key[1];
    for (int round = 0; round < TN_PHILOX_ROUNDS; round++) {
        tn_philox_round(&x0, &x1, &x2, &x3, key0, key1);
        key0 += TN_PHILOX_STEP_0;
        key1 += TN_PHILOX_STEP_1;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

/* Computes the words of one block: the seed is the key, the block index the lower half of the
 * counter, the subsequence its upper half; low words first. */
static inline void tn_philox_block(uint64_t seed, uint64_t subsequence, uint64_t block,
                                   uint32_t out[4])
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)subsequence,
                                 (uint32_t)(subsequence >> 32)};
    tn_philox(key, counter, out);
}

/* Converts a word to a uniform f32 number: 0, 2^-24, ..., 1 - 2^-24. */
static inline float tn_philox_uniform(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * (1.0F / 16777216.0F);
}

TN_END_DECLS

#endif
