/* Numbers from random words. This is the definition: each function is a fixed sequence of IEEE 754
 * operations (+ - * /, conversions from integers, no fused ones), rounded to nearest, in the type
 * that it returns. So the result depends on nothing but the arguments, bit for bit, and a device
 * without f64 can produce the f32 ones too.
 *
 * Included by objects for instruction sets, see cmake/TenonIsa.cmake: static functions only,
 * without branches, so that compilers can vectorize them. */
#ifndef TNI_DEVICE_RANDOM_NUMBERS_H
#define TNI_DEVICE_RANDOM_NUMBERS_H

#include "tenon/module/philox.h"

#include <float.h>

TN_STATIC_ASSERT(FLT_EVAL_METHOD == 0, "operations are rounded to the type of their operands");

static inline uint32_t tni_bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float tni_f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t tni_bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double tni_f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Computes both values and selects one by its bits. With the ?: operator a compiler must not
 * execute the floating-point operations of the other value, as they may trap. Those of a GPU do not
 * trap. */
static inline uint32_t tni_either_u32(uint32_t first_if_one, uint32_t first, uint32_t second)
{
#ifdef __CUDA_ARCH__
    return first_if_one ? first : second;
#else
    return second ^ ((first ^ second) & (0u - first_if_one));
#endif
}

static inline float tni_either_f32(uint32_t first_if_one, float first, float second)
{
    return tni_f32_of(tni_either_u32(first_if_one, tni_bits_f32(first), tni_bits_f32(second)));
}

static inline uint64_t tni_either_u64(uint64_t first_if_one, uint64_t first, uint64_t second)
{
    return second ^ ((first ^ second) & (0u - first_if_one));
}

static inline double tni_either_f64(uint64_t first_if_one, double first, double second)
{
    return tni_f64_of(tni_either_u64(first_if_one, tni_bits_f64(first), tni_bits_f64(second)));
}

/* 0, 2^-24, ..., 1 - 2^-24. */
static inline float tni_uniform_f32(uint32_t word)
{
    return tn_philox_uniform(word);
}

/* 0, 2^-53, ..., 1 - 2^-53. */
static inline double tni_uniform_f64(uint64_t pair)
{
    return (double)(int64_t)(pair >> 11) * 0x1p-53;
}

/* The f32 number rounded towards zero: rounding to nearest could give 1. Its unit, 2^-24, is also
 * that of the subnormal f16 numbers, so those below 2^-14 are exact. */
static inline uint16_t tni_uniform_f16(uint32_t word)
{
    uint32_t units = word >> 8;
    uint32_t normal = (tni_bits_f32(tni_uniform_f32(word)) >> 13) - (112u << 10);
    return (uint16_t)tni_either_u32(units < 1024, units, normal);
}

static inline uint16_t tni_uniform_bf16(uint32_t word)
{
    return (uint16_t)(tni_bits_f32(tni_uniform_f32(word)) >> 16);
}

/* Rounded to nearest, ties to even; for finite values below 65520. In f32, 0.5 plus a value below
 * 2^-14 is rounded to a multiple of 2^-24, which is the unit of those f16 numbers. */
static inline uint16_t tni_f16_nearest(float value)
{
    uint32_t bits = tni_bits_f32(value), size = bits & 0x7FFFFFFF;
    uint32_t small = tni_bits_f32(tni_f32_of(size) + 0.5f) - 0x3F000000;
    uint32_t normal = ((size + 0xFFF + (size >> 13 & 1)) >> 13) - (112u << 10);
    return (uint16_t)(bits >> 31 << 15 | tni_either_u32(size < 0x38800000, small, normal));
}

/* Rounded to nearest, ties to even; for finite values. */
static inline uint16_t tni_bf16_nearest(float value)
{
    uint32_t bits = tni_bits_f32(value);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* a / b for numbers far from the limits of f32. GPUs have no division instruction: these are the
 * steps that NVIDIA's compiler generates for one, without its check of the limits. `about` is an
 * approximation of 1 / b. */
static inline float tni_quotient_f32(float a, float b, float about)
{
#ifdef __CUDA_ARCH__
    const float inverse = fmaf(fmaf(-b, about, 1.0f), about, about), near = a * inverse;
    return fmaf(fmaf(-b, near, a), inverse, near);
#else
    (void)about;
    return a / b;
#endif
}

/* The GPU's approximation of 1 / b, where no other is known. */
static inline float tni_about_inverse(float b)
{
#ifdef __CUDA_ARCH__
    float about;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(about) : "f"(b));
    return about;
#else
    return b;
#endif
}

/* Square root of a positive number, as not every C library rounds it to nearest. Halving the
 * exponent gives 1 / sqrt(x) within 3.5 %, each Newton step doubles the correct digits, and a Heron
 * step for the root itself leaves an error of at most one unit in the last place. */
static inline float tni_root_f32(float x)
{
    float half = 0.5f * x, inverse = tni_f32_of(0x5F375A80 - (tni_bits_f32(x) >> 1));
    inverse = inverse * (1.5f - half * inverse * inverse);
    inverse = inverse * (1.5f - half * inverse * inverse);
    float root = x * inverse;
    return 0.5f * (root + tni_quotient_f32(x, root, inverse));
}

static inline double tni_root_f64(double x)
{
    double half = 0.5 * x;
    double inverse = tni_f64_of(UINT64_C(0x5FE6EB5000000000) - (tni_bits_f64(x) >> 1));
    inverse = inverse * (1.5 - half * inverse * inverse);
    inverse = inverse * (1.5 - half * inverse * inverse);
    inverse = inverse * (1.5 - half * inverse * inverse);
    double root = x * inverse;
    return 0.5 * (root + x / root);
}

/* Normal numbers are made in pairs by the Box-Muller method: a point in the plane at the distance
 * sqrt(-2 log u) from the origin, in a uniformly distributed direction.
 *
 * The distance. u is an odd multiple of 2^-32 in (0, 1). -log u = k log 2 - log(1 - h) with h in
 * [0, 1/2]: below 1/2, u = (1 - h) 2^-k; above, h = 1 - u and k = 0, so that h is exact to its last
 * bit near both ends. With s = h / (2 - h), -2 log(1 - h) = 4 atanh(s) = s P(s^2), where P is a
 * minimax polynomial for s^2 in [0, 1/9]. No term is negative, so nothing cancels. */
static inline float tni_distance_f32(uint32_t word)
{
    uint32_t odd = word | 1, below = odd >> 31 ^ 1;
    uint32_t nearer = tni_either_u32(below, odd, 0u - odd); /* distance to 0 or 1 */
    float small = (float)(int32_t)nearer * 0x1p-32f;
    uint32_t bits = tni_bits_f32(small);
    uint32_t k = tni_either_u32(below, 126 - (bits >> 23), 0);
    float rest = 1.0f - tni_f32_of((bits & 0x7FFFFF) | 126u << 23);
    float h = tni_either_f32(below, rest, small);
    float s = tni_quotient_f32(h, 2.0f - h, tni_about_inverse(2.0f - h)), t = s * s;
    float p = 0x1.1ECA32p-1f;
    p = p * t + 0x1.1EC03Ep-1f;
    p = p * t + 0x1.99D1CCp-1f;
    p = p * t + 0x1.555502p+0f;
    p = p * t + 4.0f;
    return tni_root_f32((float)(int32_t)k * 0x1.62E430p+0f + s * p);
}

/* The direction. The circle is cut into quarters that are centred on the axes. Within one, with x
 * in [-1, 1), the sine of x pi/4 is x S(x^2) and the cosine is C(x^2), both minimax polynomials. */
static inline void tni_direction_f32(uint32_t word, float *out_cos, float *out_sin)
{
    uint32_t quarter = (word + (1u << 29)) >> 30;
    float x = (float)(int32_t)(word << 2) * 0x1p-31f, t = x * x;
    float s = -0x1.33198Ep-15f;
    s = s * t + 0x1.4680A4p-9f;
    s = s * t - 0x1.4ABC24p-4f;
    s = s * t + 0x1.921FB6p-1f;
    s = s * x;
    float c = 0x1.D4F7EEp-19f;
    c = c * t - 0x1.55B2B6p-12f;
    c = c * t + 0x1.03C1B0p-6f;
    c = c * t - 0x1.3BD3CCp-2f;
    c = c * t + 1.0f;
    uint32_t turned = quarter & 1;
    uint32_t cos_bits = tni_bits_f32(tni_either_f32(turned, s, c)) ^ ((quarter + 1) >> 1 << 31);
    uint32_t sin_bits = tni_bits_f32(tni_either_f32(turned, c, s)) ^ (quarter >> 1 << 31);
    *out_cos = tni_f32_of(cos_bits);
    *out_sin = tni_f32_of(sin_bits);
}

static inline void tni_normals_f32(uint32_t word0, uint32_t word1, float *out0, float *out1)
{
    float distance = tni_distance_f32(word0), c, s;
    tni_direction_f32(word1, &c, &s);
    *out0 = distance * c;
    *out1 = distance * s;
}

/* The same in f64, from two words each: u is an odd multiple of 2^-64. */
static inline double tni_distance_f64(uint64_t pair)
{
    uint64_t odd = pair | 1, below = odd >> 63 ^ 1;
    uint64_t nearer = tni_either_u64(below, odd, 0u - odd);
    double small = (double)(int64_t)nearer * 0x1p-64;
    uint64_t bits = tni_bits_f64(small);
    uint64_t k = tni_either_u64(below, 1022 - (bits >> 52), 0);
    double rest = 1.0 - tni_f64_of((bits & 0xFFFFFFFFFFFFF) | UINT64_C(1022) << 52);
    double h = tni_either_f64(below, rest, small);
    double s = h / (2.0 - h), t = s * s;
    double p = 0x1.6B51196907D6Cp-2;
    p = p * t + 0x1.959CEE096FACCp-3;
    p = p * t + 0x1.163F95CC81BC8p-2;
    p = p * t + 0x1.3AA923BBA780Cp-2;
    p = p * t + 0x1.74625037A2C40p-2;
    p = p * t + 0x1.C71C4A6B217A3p-2;
    p = p * t + 0x1.2492497830166p-1;
    p = p * t + 0x1.99999998EBCE4p-1;
    p = p * t + 0x1.5555555555937p+0;
    p = p * t + 4.0;
    return tni_root_f64((double)(int64_t)k * 0x1.62E42FEFA39EFp+0 + s * p);
}

static inline void tni_direction_f64(uint64_t pair, double *out_cos, double *out_sin)
{
    uint64_t quarter = (pair + (UINT64_C(1) << 61)) >> 62;
    double x = (double)(int64_t)(pair - (quarter << 62)) * 0x1p-61, t = x * x;
    double s = 0x1.DFC5B87D97C57p-38;
    s = s * t - 0x1.E2F3F0F24E196p-30;
    s = s * t + 0x1.507821D4E0C15p-22;
    s = s * t - 0x1.32D2CCD46A422p-15;
    s = s * t + 0x1.466BC6774AFCEp-9;
    s = s * t - 0x1.4ABBCE625BDAEp-4;
    s = s * t + 0x1.921FB54442D18p-1;
    s = s * x;
    double c = -0x1.B0345ECAA2D42p-42;
    c = c * t + 0x1.F9C4ADC0A5820p-34;
    c = c * t - 0x1.A6D1E238EE7CBp-26;
    c = c * t + 0x1.E1F50675B20C9p-19;
    c = c * t - 0x1.55D3C7E3BFE56p-12;
    c = c * t + 0x1.03C1F081B5A52p-6;
    c = c * t - 0x1.3BD3CC9BE45DEp-2;
    c = c * t + 1.0;
    uint64_t turned = quarter & 1;
    uint64_t cos_bits = tni_bits_f64(tni_either_f64(turned, s, c)) ^ ((quarter + 1) >> 1 << 63);
    uint64_t sin_bits = tni_bits_f64(tni_either_f64(turned, c, s)) ^ (quarter >> 1 << 63);
    *out_cos = tni_f64_of(cos_bits);
    *out_sin = tni_f64_of(sin_bits);
}

static inline void tni_normals_f64(uint64_t pair0, uint64_t pair1, double *out0, double *out1)
{
    double distance = tni_distance_f64(pair0), c, s;
    tni_direction_f64(pair1, &c, &s);
    *out0 = distance * c;
    *out1 = distance * s;
}

#endif
