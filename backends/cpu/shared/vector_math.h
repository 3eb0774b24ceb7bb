/* Functions of f32 vectors, and of f64 vectors with the C library. Errors are in units in the last
 * place (ulp) of the result, measured over all floats with fma; without fma (two roundings) they
 * grow by at most 1.
 *
 *     exp 1.1 · log 1.0 · tanh 1.5 · sigmoid 2.5 · silu 3.5 · gelu 9 · gelu-tanh 4 + 6 |u|
 *
 * Below 2^-126, the same numbers are in units of 2^-149; for a product with x, times |x|.
 *
 * NaNs are propagated; infinities, overflow and subnormals are handled as the functions require. */
#ifndef TENON_BACKENDS_CPU_VECTOR_MATH_H
#define TENON_BACKENDS_CPU_VECTOR_MATH_H

#include "vector.h"

/* x times 2^n; n is an integer, |n| <= 250. */
INLINE vf scale_f32(vf x, vf n)
{
#if defined(__AVX512F__)
    return (vf)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
    vi number = __builtin_convertvector(n, vi), half = number >> 1;
    vu rest = (vu)number - (vu)half;
    return x * (vf)(((vu)half + 127) << 23) * (vf)((rest + 127) << 23);
#endif
}

/* The lanes where exp is not 0: below -104 it is less than any float. The other lanes are masked,
 * since a result that underflows takes as long as a hundred that do not. */
#if defined(__AVX512F__)
typedef __mmask16 exp_lanes;
#else
typedef vi exp_lanes;
#endif

INLINE exp_lanes exp_some(vf x)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-104), _CMP_NLT_UQ);
#else
    return ~(x < -104.0f);
#endif
}

/* The argument, with 0 in the masked lanes if that matters. */
INLINE vf exp_kept(vf x, exp_lanes some)
{
#if defined(__AVX512F__)
    (void)some;
    return x;
#else
    return (vf)((vi)x & some);
#endif
}

INLINE vf exp_scaled(vf x, vf n, exp_lanes some)
{
#if defined(__AVX512F__)
    return (vf)_mm512_maskz_scalef_ps(some, (__m512)x, (__m512)n);
#else
    return (vf)((vi)scale_f32(x, n) & some);
#endif
}

/* The integer n of x = n ln 2 + r. */
INLINE vf exp_whole(vf x)
{
    const vf round = splat_f32(0x1.8p23f);
    return fma_f32(x, splat_f32(1.44269504f), round) - round;
}

/* ln 2 is split into two parts; the first has few bits, so that its products are exact. */
INLINE vf exp_rest(vf x, vf n)
{
    vf r = fma_f32(n, splat_f32(-0x1.62e4p-1f), x);
    return fma_f32(n, splat_f32(-0x1.7f7d1cp-20f), r);
}

INLINE vf exp_near(vf r)
{
    vf p = fma_f32(r, splat_f32(0x1.6db448p-10f), splat_f32(0x1.123b74p-7f));
    p = fma_f32(p, r, splat_f32(0x1.55545ep-5f));
    p = fma_f32(p, r, splat_f32(0x1.55548ep-3f));
    p = fma_f32(p, r, splat_f32(0.5f));
    return fma_f32(p, r * r, r) + 1.0f;
}

/* Infinite from 89 on. The order of operands propagates a NaN. */
INLINE vf exp_f32(vf x)
{
    exp_lanes some = exp_some(x);
    vf bounded = lesser_f32(splat_f32(89), exp_kept(x, some)), n = exp_whole(bounded);
    return exp_scaled(exp_near(exp_rest(bounded, n)), n, some);
}

/* exp(r), |r| <= ln 2 / 2, within 1.7 ulp; one step less than exp_near. */
INLINE vf exp_small(vf r)
{
    vf p = fma_f32(r, splat_f32(0x1.0fa7d8p-7f), splat_f32(0x1.573adp-5f));
    p = fma_f32(p, r, splat_f32(0x1.555a6ep-3f));
    p = fma_f32(p, r, splat_f32(0x1.fffdc4p-2f));
    p = fma_f32(p, r, splat_f32(0x1.fffff6p-1f));
    return fma_f32(p, r, splat_f32(1));
}

/* For x <= 0, within 2.2 + |x| / 16 ulp: for differences, whose errors also grow with x. Without a
 * scaling instruction, 2^n is made from the bits that rounding leaves, 2^64 times too large so that
 * it is normal. */
INLINE vf exp_below_f32(vf x)
{
    exp_lanes some = exp_some(x);
    const vf round = splat_f32(0x1.8p23f), kept = exp_kept(x, some);
    vf t = fma_f32(kept, splat_f32(1.44269504f), round), n = t - round;
#if defined(__FMA__) || defined(__aarch64__)
    vf r = fma_f32(n, splat_f32(-0x1.62e43p-1f), kept);
#else
    vf r = exp_rest(kept, n);
#endif
    vf p = exp_small(r);
#if defined(__AVX512F__)
    return exp_scaled(p, n, some);
#else
    return (vf)((vi)(p * (vf)(((vu)t << 23) + (191u << 23)) * 0x1p-64f) & some);
#endif
}

INLINE vf log_f32(vf x)
{
    vi tiny = x < 0x1p-126f;
    vf scaled = choose_f32(tiny, x * 0x1p23f, x);
    vi bits = (vi)((vu)scaled - 0x3f3504f3); /* so that the mantissa is in [sqrt 1/2, sqrt 2) */
    vf e = __builtin_convertvector(bits >> 23, vf) - choose_f32(tiny, splat_f32(23), (vf){0});
    vf f = (vf)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    vf p = fma_f32(f, splat_f32(0x1.1b3f9ep-4f), splat_f32(-0x1.e2e874p-4f));
    p = fma_f32(p, f, splat_f32(0x1.e6516ap-4f));
    p = fma_f32(p, f, splat_f32(-0x1.fb436ep-4f));
    p = fma_f32(p, f, splat_f32(0x1.2332b6p-3f));
    p = fma_f32(p, f, splat_f32(-0x1.5562e0p-3f));
    p = fma_f32(p, f, splat_f32(0x1.99a546p-3f));
    p = fma_f32(p, f, splat_f32(-0x1.ffffeep-3f));
    p = fma_f32(p, f, splat_f32(0x1.555546p-2f));
    vf square = f * f;
    p = fma_f32(e, splat_f32(0x1.7f7d1cp-20f), p * f * square);
    vf value = fma_f32(e, splat_f32(0x1.62e4p-1f), f + fma_f32(square, splat_f32(-0.5f), p));
    value = choose_f32((x == INFINITY) | is_nan_f32(x), x, value);
    value = choose_f32(x == 0.0f, splat_f32(-INFINITY), value);
    return choose_f32(x < 0.0f, splat_f32(NAN), value);
}

INLINE vf tanh_f32(vf x)
{
    vu sign = (vu)x & 0x80000000;
    vf y = (vf)((vu)x ^ sign), s = x * x;
    vf p = fma_f32(s, splat_f32(-0x1.76abacp-8f), splat_f32(0x1.5256bcp-6f));
    p = fma_f32(p, s, splat_f32(-0x1.b84444p-5f));
    p = fma_f32(p, s, splat_f32(0x1.110768p-3f));
    p = fma_f32(p, s, splat_f32(-0x1.555534p-2f));
    p = fma_f32(p * s, x, x);
    vf far = 1.0f - 2.0f / (exp_f32(y + y) + 1.0f);
    return choose_below_f32(y, splat_f32(0.625f), p, (vf)((vu)far | sign));
}

/* 1 / x within 1 ulp, for 1 <= x <= 16. */
INLINE vf reciprocal_f32(vf x)
{
#if defined(__AVX512F__)
    __m512 near = _mm512_rcp14_ps((__m512)x);
    __m512 rest = _mm512_fnmadd_ps((__m512)x, near, _mm512_set1_ps(1));
    return (vf)_mm512_fmadd_ps(near, rest, near);
#else
    return 1.0f / x;
#endif
}

/* Uses the smaller of exp(x) and exp(-x), so that small results are accurate. */
INLINE vf sigmoid_f32(vf x)
{
    vf e = exp_f32((vf)((vu)x | 0x80000000));
    return choose_below_f32(x, (vf){0}, e, splat_f32(1)) / (1.0f + e);
}

/* x times the normal distribution, (1 + erf(x / sqrt 2)) / 2: the greater of x and 0, less |x| times the
 * distribution's tail. The tail is exp(-y y / 2) times a polynomial in t = 1 / (1 + 0.35 y). -y y / 2 is
 * kept in two parts. */
INLINE vf gelu_f32(vf x)
{
    vf y = lesser_f32(splat_f32(15), size_of_f32(x)); /* propagates NaN */
#if defined(__FMA__) || defined(__aarch64__)
    vf half = y * -0.5f, square = y * half, low = fma_f32(y, half, -square);
#else
    vf high = (vf)((vu)y & 0xfffff000), low = (y - high) * (y + high) * -0.5f;
    vf square = high * (high * -0.5f);
#endif
    vf t = reciprocal_f32(fma_f32(y, splat_f32(0.35f), splat_f32(1)));
    vf p = fma_f32(t, splat_f32(-0x1.ddd1f6p-6f), splat_f32(0x1.27091cp-3f));
    p = fma_f32(p, t, splat_f32(-0x1.060ae6p-2f));
    p = fma_f32(p, t, splat_f32(0x1.466f42p-3f));
    p = fma_f32(p, t, splat_f32(-0x1.7d24cap-6f));
    p = fma_f32(p, t, splat_f32(0x1.b06eecp-4f));
    p = fma_f32(p, t, splat_f32(0x1.eac3bap-4f));
    p = fma_f32(p, t, splat_f32(0x1.1e7130p-3f));
    p = fma_f32(p, t, splat_f32(0x1.1df1c0p-3f));
    vf n = exp_whole(square), r = exp_rest(square, n) + low;
    vf tail = scale_f32(exp_small(r) * (p * (t * y)), n);
    return choose_below_f32(x, (vf){0}, x * 0.0f, x) - tail; /* NaN of -infinity */
}

/* (1 + tanh u) / 2 is the sigmoid of 2 u, where errors of u are multiplied by |u|. */
INLINE vf gelu_tanh_f32(vf x)
{
    return x * sigmoid_f32(1.59576912f * fma_f32(x * x * x, splat_f32(0.044715f), x));
}

INLINE vf silu_f32(vf x)
{
    return x * sigmoid_f32(x);
}

/* With the C library, lane by lane. */
#define EACH_LANE(name, expression)         \
    INLINE vd name##_f64(vd v)              \
    {                                       \
        for (int i = 0; i < DOUBLES; i++) { \
            double x = v[i];                \
            v[i] = (expression);            \
        }                                   \
        return v;                           \
    }
EACH_LANE(exp, exp(x))
EACH_LANE(exp_below, x < -746 ? 0 : exp(x))
EACH_LANE(log, log(x))
EACH_LANE(tanh, tanh(x))
EACH_LANE(sigmoid, 1 / (1 + exp(-x)))
EACH_LANE(gelu, x *erfc(x * -0.70710678118654752440) / 2)
EACH_LANE(gelu_tanh, x / (1 + exp(-1.59576912160573071176 * (x + 0.044715 * x * x * x))))
EACH_LANE(silu, x / (1 + exp(-x)))
#undef EACH_LANE

#endif
