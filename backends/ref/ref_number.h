/* Conversion of floats narrower than f32: each format is a row of parameters, and two functions
 * read and write all of them. Every value of a format is exactly a double; conversion from double
 * rounds once, to nearest even.
 *
 * NaN is propagated. Out-of-range values become infinity if the format has one, and NaN if it has
 * none (f8_e4m3fn and the fnuz formats): no cast saturates. */
#ifndef TNI_REF_NUMBER_H
#define TNI_REF_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct tni_ref_format {
    int32_t mantissa;  /* bits of the mantissa */
    int32_t bias;      /* of the exponent */
    uint32_t sign;     /* the sign bit; codes below it are the numbers from 0 up */
    uint32_t greatest; /* code of the greatest finite number */
    uint32_t beyond;   /* code of greater numbers: infinity, or NaN */
    uint32_t nan;
    bool infinite;    /* `beyond` is infinity */
    bool signed_zero; /* if false, the sign bit alone is the NaN */
    double least;     /* the least number above 0 */
} tni_ref_format;

static const tni_ref_format tni_ref_f16 = {10,     15,   0x8000, 0x7BFF, 0x7C00,
                                           0x7E00, true, true,   0x1p-24};
static const tni_ref_format tni_ref_bf16 = {7,      127,  0x8000, 0x7F7F,  0x7F80,
                                            0x7FC0, true, true,   0x1p-133};
static const tni_ref_format tni_ref_e4m3fn = {3, 7, 0x80, 0x7E, 0x7F, 0x7F, false, true, 0x1p-9};
static const tni_ref_format tni_ref_e4m3fnuz = {3,    8,     0x80,  0x7F,   0x80,
                                                0x80, false, false, 0x1p-10};
static const tni_ref_format tni_ref_e5m2 = {2, 15, 0x80, 0x7B, 0x7C, 0x7F, true, true, 0x1p-16};
static const tni_ref_format tni_ref_e5m2fnuz = {2,    16,    0x80,  0x7F,   0x80,
                                                0x80, false, false, 0x1p-17};

static inline uint64_t tni_ref_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double tni_ref_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Only for double: the type-generic macros of <math.h> cause conversion warnings in some
 * libraries. */
static inline bool tni_ref_is_finite(double value)
{
    return (tni_ref_bits(value) >> 52 & 0x7FF) != 0x7FF;
}

static inline bool tni_ref_is_nan(double value)
{
    return value != value;
}

static inline double tni_ref_small_value(const tni_ref_format *format, uint32_t code)
{
    const uint32_t magnitude = code & (format->sign - 1);
    double value;
    if (!format->signed_zero && code == format->sign)
        return NAN;
    if (magnitude > format->greatest)
        value = format->infinite && magnitude == format->beyond ? (double)INFINITY : (double)NAN;
    else if (magnitude >> format->mantissa == 0)
        value = magnitude * format->least;
    else
        value = tni_ref_from_bits(((uint64_t)magnitude << (52 - format->mantissa)) +
                                  ((uint64_t)(1023 - format->bias) << 52));
    return tni_ref_from_bits(tni_ref_bits(value) | (uint64_t)(code >= format->sign) << 63);
}

/* bits >> shift, rounded to nearest even. */
static inline uint64_t tni_ref_shift_even(uint64_t bits, int32_t shift)
{
    const uint64_t odd = bits >> shift & 1;
    return (bits + (UINT64_C(1) << (shift - 1)) - 1 + odd) >> shift;
}

/* The code of a non-negative number or NaN; the codes of NaN and infinity are above all others. */
static inline uint64_t tni_ref_small_magnitude(const tni_ref_format *format, uint64_t bits)
{
    int32_t offset = 1023 - format->bias, exponent = (int32_t)(bits >> 52);
    int32_t shift = 52 - format->mantissa;
    if (exponent > offset)
        return tni_ref_shift_even(bits - ((uint64_t)offset << 52), shift);
    shift += offset + 1 - exponent;
    if (shift > 60)
        return 0;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    return tni_ref_shift_even(bits, shift);
}

static inline uint32_t tni_ref_small_code(const tni_ref_format *format, double value)
{
    uint64_t bits = tni_ref_bits(value), magnitude;
    const uint32_t sign = (uint32_t)(bits >> 63) * format->sign;
    bits &= (uint64_t)INT64_MAX;
    if (bits > UINT64_C(0x7FF) << 52)
        return sign | format->nan;
    magnitude = tni_ref_small_magnitude(format, bits);
    if (magnitude > format->greatest)
        return sign | format->beyond;
    if (magnitude == 0 && !format->signed_zero)
        return 0;
    return sign | (uint32_t)magnitude;
}

/* Truncates towards zero; out-of-range values saturate, NaN becomes 0. */
static inline int64_t tni_ref_to_signed(double value, int64_t least, int64_t greatest)
{
    double whole = trunc(value);
    if (tni_ref_is_nan(whole))
        return 0;
    if (whole >= (double)greatest)
        return greatest;
    return whole <= (double)least ? least : (int64_t)whole;
}

static inline uint64_t tni_ref_to_unsigned(double value, uint64_t greatest)
{
    double whole = trunc(value);
    if (!(whole > 0)) /* also NaN */
        return 0;
    return whole >= (double)greatest ? greatest : (uint64_t)whole;
}

#endif
