/* Of a family: weights of scores.
 *
 * Scores times `factor` are in the family's own measure, in which a weight is EXP of the difference to the
 * greatest: of f32 to base 2, of f64 to base e. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_WEIGHTS_H
#define TENON_BACKENDS_CPU_ATTENTION_WEIGHTS_H

#include "../kernels/math.h"

/* 2^x of x <= 1, within 2.1 ulp with fma and 2.3 without; 0 below -126, a NaN stays one. */
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

INLINE vd weight_f64(vd x)
{
    for (int i = 0; i < DOUBLES; i++)
        x[i] = x[i] < -746 ? 0 : exp(x[i]);
    return x;
}

#define UNIT_f32 1.44269504088896340736 /* log2 e */
#define UNIT_f64 1.0

/* The sum of the lanes, in one order, and the greatest one, if none is a NaN. */
#define LANE_FOLDS(real, vector, name)                                              \
    INLINE double lanes_sum_##name(vector v)                                        \
    {                                                                               \
        real lanes[sizeof v / sizeof(real)];                                        \
        double sums[sizeof v / sizeof(real)];                                       \
        memcpy(lanes, &v, sizeof lanes);                                            \
        for (size_t i = 0; i < sizeof lanes / sizeof(real); i++)                    \
            sums[i] = (double)lanes[i];                                             \
        for (size_t half = sizeof lanes / sizeof(real) / 2; half > 0; half /= 2)    \
            for (size_t i = 0; i < half; i++)                                       \
                sums[i] += sums[i + half];                                          \
        return sums[0];                                                             \
    }                                                                               \
    INLINE real lanes_most_##name(vector v)                                         \
    {                                                                               \
        real lanes[sizeof v / sizeof(real)];                                        \
        memcpy(lanes, &v, sizeof lanes);                                            \
        for (size_t half = sizeof lanes / sizeof(real) / 2; half > 0; half /= 2)    \
            for (size_t i = 0; i < half; i++)                                       \
                lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half]; \
        return lanes[0];                                                            \
    }
LANE_FOLDS(float, vf, f32)
LANE_FOLDS(double, vd, f64)
#undef LANE_FOLDS

#endif
