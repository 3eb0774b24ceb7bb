/* Masks of the first lanes of a vector: lanes outside the mask are neither read nor written. */
#ifndef TENON_BACKENDS_CPU_MASK_H
#define TENON_BACKENDS_CPU_MASK_H

#include "vector.h"

/* UNROLLED precedes loops with bounds that the compiler knows, so that arrays of vectors become
 * registers; UNROLLED_2 precedes other loops; SPECIAL precedes functions that are compiled for each
 * set of constant arguments. All are disabled in builds that are not made for speed: sanitizers
 * check every access, and would check each unrolled copy. */
#if TN_MODULE_BUILT_WITH || !defined(__OPTIMIZE__)
#define UNROLLED
#define UNROLLED_2
#define SPECIAL static __attribute__((unused))
#elif defined(__clang__)
#define UNROLLED   _Pragma("clang loop unroll(full)")
#define UNROLLED_2 _Pragma("clang loop unroll_count(2)")
#define SPECIAL    INLINE
#else
#define UNROLLED   _Pragma("GCC unroll 32")
#define UNROLLED_2 _Pragma("GCC unroll 2")
#define SPECIAL    INLINE
#endif

#if defined(__AVX512F__)

typedef __mmask16 mask_f32;
typedef __mmask8 mask_f64;

/* Mask of the first `n` lanes, from 0 to all of them. */
INLINE mask_f32 mask_first_f32(int64_t n)
{
    return (mask_f32)((1u << n) - 1);
}

INLINE mask_f64 mask_first_f64(int64_t n)
{
    return (mask_f64)((1u << n) - 1);
}

INLINE vf load_some_f32(const float *from, mask_f32 some)
{
    return (vf)_mm512_maskz_loadu_ps(some, from);
}

INLINE vd load_some_f64(const double *from, mask_f64 some)
{
    return (vd)_mm512_maskz_loadu_pd(some, from);
}

INLINE void store_some_f32(float *to, mask_f32 some, vf v)
{
    _mm512_mask_storeu_ps(to, some, (__m512)v);
}

INLINE void store_some_f64(double *to, mask_f64 some, vd v)
{
    _mm512_mask_storeu_pd(to, some, (__m512d)v);
}

#elif defined(__AVX2__)

typedef vi mask_f32;
typedef vl mask_f64;

INLINE mask_f32 mask_first_f32(int64_t n)
{
    return (vi){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)n;
}

INLINE mask_f64 mask_first_f64(int64_t n)
{
    return (vl){0, 1, 2, 3} < n;
}

INLINE vf load_some_f32(const float *from, mask_f32 some)
{
    return (vf)_mm256_maskload_ps(from, (__m256i)some);
}

INLINE vd load_some_f64(const double *from, mask_f64 some)
{
    return (vd)_mm256_maskload_pd(from, (__m256i)some);
}

INLINE void store_some_f32(float *to, mask_f32 some, vf v)
{
    _mm256_maskstore_ps(to, (__m256i)some, (__m256)v);
}

INLINE void store_some_f64(double *to, mask_f64 some, vd v)
{
    _mm256_maskstore_pd(to, (__m256i)some, (__m256d)v);
}

#else

/* Lanes are loaded one by one: a memcpy of a few bytes would be a call, and every accumulator in a
 * register would be spilled around it. */
INLINE vf load_some_f32(const loose_f32 *from, int64_t some)
{
    switch (some) {
    case 0: return (vf){0};
    case 1: return (vf){from[0]};
    case 2: return (vf){from[0], from[1]};
    case 3: return (vf){from[0], from[1], from[2]};
    default: return load_f32(from);
    }
}

INLINE vd load_some_f64(const loose_f64 *from, int64_t some)
{
    switch (some) {
    case 0: return (vd){0};
    case 1: return (vd){from[0]};
    default: return load_f64(from);
    }
}

#define MASK(real, vector, name)                                        \
    typedef int64_t mask_##name;                                        \
    INLINE mask_##name mask_first_##name(int64_t n)                     \
    {                                                                   \
        return n;                                                       \
    }                                                                   \
    INLINE void store_some_##name(real *to, mask_##name some, vector v) \
    {                                                                   \
        if ((size_t)some * sizeof(real) == sizeof v) {                  \
            store_##name(to, v);                                        \
            return;                                                     \
        }                                                               \
        memcpy(to, &v, (size_t)some * sizeof(real));                    \
    }
MASK(float, vf, f32)
MASK(double, vd, f64)
#undef MASK
TN_STATIC_ASSERT(LANES == 4, "load_some has a case for every number of lanes");

#endif

#endif
