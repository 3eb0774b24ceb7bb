/* Weights of scores, in f32 or f64.
 *
 * Scores times `factor` are in base-2 units, in which a weight is 2 to the power of the
 * difference to the greatest score. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_WEIGHTS_H
#define TENON_BACKENDS_CPU_ATTENTION_WEIGHTS_H

#include "../shared/mask.h"
#include "../shared/vector_math.h"

#include <float.h>

/* 2^x for x <= 1, within 2.1 ulp with fma and 2.3 without; 0 below -126; NaN is propagated. */
INLINE vf weight_f32(vf x)
{
    const vf round = splat_f32(0x1.8p23f);
    vf t = x + round, n = t - round, r = x - n;
    vf p = fma_f32(r, splat_f32(0x1.5bba14p-10f), splat_f32(0x1.3cea88p-7f));
    p = fma_f32(p, r, splat_f32(0x1.c6b752p-5f));
    p = fma_f32(p, r, splat_f32(0x1.ebf9bcp-3f));
    p = fma_f32(p, r, splat_f32(0x1.62e42ap-1f));
    p = fma_f32(p, r, splat_f32(1));
#if defined(__AVX512F__)
    __mmask16 some = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-126), _CMP_NLT_UQ);
    return (vf)_mm512_maskz_scalef_ps(some, (__m512)p, (__m512)n);
#else
    vi some = ~(x < -126.0f);
    return (vf)((vi)(p * (vf)(((vu)t + 127) << 23)) & some);
#endif
}

/* As weight_f32, within 1 ulp with fma and 1.3 without; 0 below -1022. */
INLINE vd weight_f64(vd x)
{
    static const double of[] = {0x1.e9d3fe3952179p-32, 0x1.e6063f7217bc6p-28, 0x1.b524fae627834p-24,
                                0x1.62bfd47773353p-20, 0x1.ffcbfc670dcd4p-17, 0x1.430913096fd9fp-13,
                                0x1.5d87fe78a5276p-10, 0x1.3b2ab6fba1ddap-7,  0x1.c6b08d704a0c2p-5,
                                0x1.ebfbdff82c598p-3,  0x1.62e42fefa39efp-1,  1};
    const vd round = splat_f64(0x1.8p52);
    const vd t = x + round, n = t - round, r = x - n;
    vd p = splat_f64(of[0]);
    UNROLLED for (size_t i = 1; i < sizeof of / sizeof of[0]; i++) p =
        fma_f64(p, r, splat_f64(of[i]));
#if defined(__AVX512F__)
    const __mmask8 some = _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(-1022), _CMP_NLT_UQ);
    return (vd)_mm512_maskz_scalef_pd(some, (__m512d)p, (__m512d)n);
#else
    typedef uint64_t bits __attribute__((vector_size(sizeof(vd))));
    const vl some = ~(x < -1022.0);
    return (vd)((vl)(p * (vd)(((bits)t + 1023) << 52)) & some);
#endif
}

#define UNIT 1.44269504088896340736 /* log2 e */

#endif
