/* Vectors of the instruction set that a file is compiled for: arithmetic and comparisons are the
 * compiler's own, on its vector types; missing operations are here. `vf` has LANES floats, `vd`
 * half as many doubles; a comparison sets all bits or none of each lane.
 *
 * Everything is static, since objects of several instruction sets are linked into one library. */
#ifndef TENON_BACKENDS_CPU_VECTOR_H
#define TENON_BACKENDS_CPU_VECTOR_H

#include "tenon/module/kernel.h"

#include <math.h>
#include <stdbool.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#define DOUBLES (LANES / 2)

#define INLINE static inline __attribute__((always_inline, unused))

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef double vd __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef int64_t vl __attribute__((vector_size(4 * LANES)));
typedef int16_t vs __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
typedef int8_t vb __attribute__((vector_size(LANES)));
typedef uint8_t vc __attribute__((vector_size(LANES)));
typedef float vg __attribute__((vector_size(2 * LANES))); /* as many floats as vd has doubles */

/* A number at any alignment. Kernels must use these types to access single elements of operands. */
typedef float loose_f32 __attribute__((aligned(1), may_alias));
typedef double loose_f64 __attribute__((aligned(1), may_alias));

#define LOAD(type, name)                       \
    INLINE type load_##name(const void *from)  \
    {                                          \
        type v;                                \
        memcpy(&v, from, sizeof v);            \
        return v;                              \
    }                                          \
    INLINE void store_##name(void *to, type v) \
    {                                          \
        memcpy(to, &v, sizeof v);              \
    }
LOAD(vf, f32)
LOAD(vd, f64)
LOAD(vi, i32)
LOAD(vu, u32)
LOAD(vh, u16)
LOAD(vb, i8)
LOAD(vc, u8)
LOAD(vg, few)
#undef LOAD

/* Non-temporal store of a vector, if the processor has it; `to` must be aligned to it. Other
 * threads see it after stream_end. */
INLINE void stream_vector(char *to, vu v)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i *)(void *)to, (__m512i)v);
#elif defined(__AVX2__)
    _mm256_stream_si256((__m256i *)(void *)to, (__m256i)v);
#elif defined(__SSE2__)
    _mm_stream_si128((__m128i *)(void *)to, (__m128i)v);
#else
    memcpy(to, &v, sizeof v);
#endif
}

/* Non-temporal store of a line of 64 bytes, if the processor has it; `to` must be aligned to it.
 * Copied in pieces of the size in which they were just stored, because only those are forwarded.
 * Other threads see it after stream_end. */
INLINE void stream_line(char *to, const char *from)
{
#if defined(__SSE2__)
    for (int i = 0; i < 64; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
#else
    memcpy(to, from, 64);
#endif
}

INLINE void stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Copies an even number of bytes, followed by zeros up to `room`, which is whole vectors. Written
 * as vectors, so that loads that follow are forwarded without waiting. */
INLINE void copy_padded(char *to, const char *from, int64_t bytes, int64_t room)
{
#if defined(__AVX512F__)
    for (int64_t i = 0, left = bytes; i < room; i += 64, left -= 64) {
        __mmask64 some = left <= 0 ? 0 : left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
        _mm512_storeu_si512(to + i, _mm512_maskz_loadu_epi8(some, from + i));
    }
#elif defined(__AVX2__)
    const int64_t words = bytes / 4;
    for (int64_t i = 0; i < room; i += 32) {
        vi some = (vi){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)(words - i / 4);
        _mm256_storeu_si256(
            (__m256i *)(void *)(to + i),
            _mm256_maskload_epi32((const int *)(const void *)(from + i), (__m256i)some));
    }
    if (bytes % 4)
        memcpy(to + words * 4, from + words * 4, 2);
#else
    memcpy(to, from, (size_t)bytes);
    memset(to + bytes, 0, (size_t)(room - bytes));
#endif
}

INLINE vf splat_f32(float x)
{
    return x - (vf){0};
}

INLINE vd splat_f64(double x)
{
    return x - (vd){0};
}

INLINE vf choose_f32(vi mask, vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
#endif
}

/* x where a < b, else y. */
INLINE vf choose_below_f32(vf a, vf b, vf x, vf y)
{
#if defined(__AVX512F__)
    return (vf)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ), (__m512)y,
                                    (__m512)x);
#else
    return choose_f32(a < b, x, y);
#endif
}

INLINE vd choose_f64(vl mask, vd a, vd b)
{
    return (vd)(((vl)a & mask) | ((vl)b & ~mask));
}

/* One rounding if the instruction set has fma, else two. */
INLINE vf fma_f32(vf a, vf b, vf c)
{
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

INLINE vd fma_f64(vd a, vd b, vd c)
{
#if defined(__AVX512F__)
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__)
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
    return (vd)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

INLINE vf sqrt_f32(vf x)
{
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__aarch64__)
    return (vf)vsqrtq_f32((float32x4_t)x);
#else
    for (int i = 0; i < LANES; i++)
        x[i] = sqrtf(x[i]);
    return x;
#endif
}

INLINE vd sqrt_f64(vd x)
{
#if defined(__AVX512F__)
    return (vd)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
    return (vd)_mm256_sqrt_pd((__m256d)x);
#else
    for (int i = 0; i < DOUBLES; i++)
        x[i] = sqrt(x[i]);
    return x;
#endif
}

INLINE vf size_of_f32(vf x)
{
    return (vf)((vu)x & 0x7fffffff);
}

INLINE vd size_of_f64(vd x)
{
    return (vd)((vl)x & INT64_MAX);
}

INLINE vi is_nan_f32(vf x)
{
    return ((vi)x & 0x7fffffff) > 0x7f800000;
}

INLINE vl is_nan_f64(vd x)
{
    return ((vl)x & INT64_MAX) > 0x7ff0000000000000;
}

/* b if a is NaN or if both are equal. */
INLINE vf greater_f32(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return choose_f32(a > b, a, b);
#endif
}

INLINE vf lesser_f32(vf a, vf b)
{
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    return choose_f32(a < b, a, b);
#endif
}

INLINE vs greater_i16(vs a, vs b)
{
#if defined(__AVX512F__)
    return (vs)_mm512_max_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vs)_mm256_max_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vs)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    vs mask = a > b;
    return (a & mask) | (b & ~mask);
#endif
}

INLINE vd greater_f64(vd a, vd b)
{
    return choose_f64(a > b, a, b);
}

INLINE vd lesser_f64(vd a, vd b)
{
    return choose_f64(a < b, a, b);
}

/* The sum of the lanes, in a fixed order. */
INLINE double total_f64(vd v)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_pd((__m512d)v); /* halves are added, as below */
#else
    double lanes[DOUBLES];
    memcpy(lanes, &v, sizeof lanes);
    for (int half = DOUBLES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
#endif
}

/* As f64; each lane of the first half is added to one of the second. */
INLINE vd wide_f32(vf v)
{
    vg halves[2];
    memcpy(halves, &v, sizeof halves);
    return __builtin_convertvector(halves[0], vd) + __builtin_convertvector(halves[1], vd);
}

INLINE vd wide_f64(vd v)
{
    return v;
}

/* The greatest lane, if none is NaN. */
#define MOST(real, vector, name)                                                    \
    INLINE real most_##name(vector v)                                               \
    {                                                                               \
        real lanes[sizeof v / sizeof(real)];                                        \
        memcpy(lanes, &v, sizeof lanes);                                            \
        for (size_t half = sizeof lanes / sizeof(real) / 2; half > 0; half /= 2)    \
            for (size_t i = 0; i < half; i++)                                       \
                lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half]; \
        return lanes[0];                                                            \
    }
MOST(int16_t, vs, i16)
#if defined(__AVX512F__)
INLINE float most_f32(vf v)
{
    return _mm512_reduce_max_ps((__m512)v);
}

INLINE double most_f64(vd v)
{
    return _mm512_reduce_max_pd((__m512d)v);
}
#else
MOST(float, vf, f32)
MOST(double, vd, f64)
#endif
#undef MOST

/* Integers of 16 and 8 bits to 32 and back; narrowing drops the high bits. */
#if defined(__AVX512F__)
INLINE vu widen_u16(vh v)
{
    return (vu)_mm512_cvtepu16_epi32((__m256i)v);
}

INLINE vi widen_i8(vb v)
{
    return (vi)_mm512_cvtepi8_epi32((__m128i)v);
}

INLINE vi widen_u8(vc v)
{
    return (vi)_mm512_cvtepu8_epi32((__m128i)v);
}

INLINE vh narrow_u16(vu v)
{
    return (vh)_mm512_cvtepi32_epi16((__m512i)v);
}

INLINE vc narrow_u8(vi v)
{
    return (vc)_mm512_cvtepi32_epi8((__m512i)v);
}
#elif defined(__AVX2__)
INLINE vu widen_u16(vh v)
{
    return (vu)_mm256_cvtepu16_epi32((__m128i)v);
}

INLINE vi widen_i8(vb v)
{
    return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&v));
}

INLINE vi widen_u8(vc v)
{
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&v));
}

INLINE vh narrow_u16(vu v)
{
    __m256i low = (__m256i)(v & 0xffff); /* packing saturates */
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return (vh)_mm256_castsi256_si128(packed);
}

INLINE vc narrow_u8(vi v)
{
    __m128i half = (__m128i)narrow_u16((vu)v & 0xff);
    vc out;
    _mm_storel_epi64((__m128i *)(void *)&out, _mm_packus_epi16(half, half));
    return out;
}
#else
INLINE vu widen_u16(vh v)
{
    return __builtin_convertvector(v, vu);
}

INLINE vi widen_i8(vb v)
{
    return __builtin_convertvector(v, vi);
}

INLINE vi widen_u8(vc v)
{
    return __builtin_convertvector(v, vi);
}

INLINE vh narrow_u16(vu v)
{
    return __builtin_convertvector(v, vh);
}

INLINE vc narrow_u8(vi v)
{
    return __builtin_convertvector(v, vc);
}
#endif

INLINE vf widen_bf16(vh v)
{
    return (vf)(widen_u16(v) << 16);
}

/* Rounds to nearest even; NaN is propagated. The result is in the high halves; the low halves are
 * undefined. */
INLINE vu round_bf16(vf v)
{
    vu bits = (vu)v;
#if defined(__AVX512F__)
    __mmask16 odd = _mm512_test_epi32_mask((__m512i)bits, _mm512_set1_epi32(0x10000));
    __mmask16 nan = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q);
    __m512i rounded = (__m512i)(bits + 0x7fff);
    rounded = _mm512_mask_add_epi32(rounded, odd, rounded, _mm512_set1_epi32(1));
    return (vu)_mm512_mask_or_epi32(rounded, nan, (__m512i)bits, _mm512_set1_epi32(0x400000));
#else
    vu rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (vu)choose_f32(is_nan_f32(v), (vf)(bits | 0x400000), (vf)rounded);
#endif
}

INLINE vh narrow_bf16(vf v)
{
    return narrow_u16(round_bf16(v) >> 16);
}

/* The high halves of the lanes of two vectors, interleaved. */
INLINE vu split_high(vu a, vu b)
{
    return a >> 16 | (b & 0xffff0000);
}

/* The high halves of the lanes of a, followed by those of b. */
INLINE vu join_high(vu a, vu b)
{
#if defined(__AVX512F__)
    typedef uint16_t words __attribute__((vector_size(4 * LANES)));
    const words order = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                         1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    return (vu)_mm512_permutexvar_epi16((__m512i)order, (__m512i)split_high(a, b));
#elif defined(__AVX2__)
    __m256i packed = _mm256_packus_epi32((__m256i)(a >> 16), (__m256i)(b >> 16));
    return (vu)_mm256_permute4x64_epi64(packed, 0xd8);
#elif defined(__SSE2__)
    return (vu)_mm_packs_epi32((__m128i)((vi)a >> 16), (__m128i)((vi)b >> 16));
#else
    vh halves[] = {narrow_u16(a >> 16), narrow_u16(b >> 16)};
    vu both;
    memcpy(&both, halves, sizeof both);
    return both;
#endif
}

/* Joins two half vectors. */
INLINE vu join_u16(vh a, vh b)
{
#if defined(__AVX512F__)
    return (vu)_mm512_inserti64x4(_mm512_castsi256_si512((__m256i)a), (__m256i)b, 1);
#elif defined(__AVX2__)
    return (vu)_mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)a), (__m128i)b, 1);
#else
    vh halves[] = {a, b};
    vu both;
    memcpy(&both, halves, sizeof both);
    return both;
#endif
}

/* Multiplies by the difference of the exponent biases, which is exact, also for subnormals. */
INLINE vf widen_f16(vh v)
{
#if defined(__AVX512F__)
    return (vf)_mm512_cvtph_ps((__m256i)v);
#elif defined(__AVX2__)
    return (vf)_mm256_cvtph_ps((__m128i)v);
#else
    vu bits = widen_u16(v), sign = (bits & 0x8000) << 16;
    vf value = (vf)((bits & 0x7fff) << 13) * 0x1p112f;
    vu special = (vu)((bits & 0x7c00) == 0x7c00) & 0x7f800000;
    return (vf)((vu)value | special | sign);
#endif
}

INLINE vh narrow_f16(vf v)
{
#if defined(__AVX512F__)
    /* The variant without a mask is a macro that warns in builds without optimization. */
    return (vh)_mm512_maskz_cvtps_ph((__mmask16)0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__AVX2__)
    return (vh)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
#else
    vu bits = (vu)v, sign = bits & 0x80000000, size = bits ^ sign;
    vu normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    vu small = (vu)((vf)size + 0.5f) - 0x3f000000; /* the sum rounds to steps of 2^-24 */
    vu is_small = (vu)(size < 0x38800000), is_great = (vu)(size >= 0x477ff000);
    vu is_nan = (vu)(size > 0x7f800000);
    vu half = (small & is_small) | (normal & ~is_small);
    half = (0x7c00 & is_great) | (half & ~is_great);
    half |= (size >> 13 & 0x3ff & is_nan) | (0x200 & is_nan);
    return narrow_u16(half | sign >> 16);
#endif
}

/* Rounds to nearest even, for magnitudes below 2^22. */
INLINE vf round_f32(vf x)
{
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

/* Truncates towards zero; NaN becomes 0, and out-of-range values saturate. */
INLINE vi clamp_to_int(vf x, float low, float high)
{
    vf bounded = greater_f32(lesser_f32(x, splat_f32(high)), splat_f32(low));
    bounded = choose_f32(is_nan_f32(x), (vf){0}, bounded);
    return __builtin_convertvector(bounded, vi);
}

/* The same for 32 bits. */
INLINE vi cut_to_int(vf x)
{
    vi high = x >= 0x1p31f, low = x < -0x1p31f;
    vf safe = choose_f32(high | low | is_nan_f32(x), (vf){0}, x);
    vi value = __builtin_convertvector(safe, vi);
    return (value & ~high & ~low) | (INT32_MAX & high) | (INT32_MIN & low);
}

#endif
