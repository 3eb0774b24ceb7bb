/* Numbers of twice the precision of f64: the unrounded sum of two doubles. f64 is summed in them,
 * because long double differs between machines; these have the same bits on every machine that
 * computes according to IEEE 754, without contraction.
 *
 * `hi` alone is the result of plain double arithmetic, so infinities and NaNs are as there; in that
 * case, and if the parts of a product overflow, `lo` is meaningless. */
#ifndef TNI_REF_WIDE_H
#define TNI_REF_WIDE_H

#include "ref_number.h"

typedef struct tni_ref_wide {
    double hi;
    double lo;
} tni_ref_wide;

/* Splits into parts of at most 26 bits each, so that products of parts are exact. Their sum is the
 * value. */
static inline void tni_ref_split(double value, double *out_high, double *out_low)
{
    const uint64_t half = UINT64_C(1) << 26, rest = 2 * half - 1;
    uint64_t bits = tni_ref_bits(value);
    double high = tni_ref_from_bits((bits + half) & ~rest);
    if (!tni_ref_is_finite(high)) /* rounding up overflowed */
        high = tni_ref_from_bits(bits & ~rest);
    *out_high = tni_ref_is_finite(value) ? high : value;
    *out_low = tni_ref_is_finite(value) ? value - high : 0;
}

static inline tni_ref_wide tni_ref_wide_add(tni_ref_wide a, double b)
{
    double sum = a.hi + b, of_b = sum - a.hi;
    return (tni_ref_wide){sum, a.lo + ((a.hi - (sum - of_b)) + (b - of_b))};
}

static inline tni_ref_wide tni_ref_wide_plus(tni_ref_wide a, tni_ref_wide b)
{
    tni_ref_wide sum = tni_ref_wide_add(a, b.hi);
    sum.lo += b.lo;
    return sum;
}

static inline tni_ref_wide tni_ref_wide_product(double a, double b)
{
    double a_high, a_low, b_high, b_low, product = a * b;
    tni_ref_split(a, &a_high, &a_low);
    tni_ref_split(b, &b_high, &b_low);
    return (tni_ref_wide){product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) +
                                       a_low * b_low};
}

static inline tni_ref_wide tni_ref_wide_scale(tni_ref_wide a, double b)
{
    tni_ref_wide product = tni_ref_wide_product(a.hi, b);
    product.lo += a.lo * b;
    return product;
}

static inline double tni_ref_wide_round(tni_ref_wide a)
{
    return tni_ref_is_finite(a.hi) && tni_ref_is_finite(a.lo) ? a.hi + a.lo : a.hi;
}

/* The same number with `hi` rounded to nearest. */
static inline tni_ref_wide tni_ref_wide_tidy(tni_ref_wide a)
{
    if (!tni_ref_is_finite(a.hi) || !tni_ref_is_finite(a.lo))
        return (tni_ref_wide){a.hi, 0};
    return tni_ref_wide_add((tni_ref_wide){a.hi, 0}, a.lo);
}

/* Operands must be tidy, here and below. */
static inline tni_ref_wide tni_ref_wide_times(tni_ref_wide a, tni_ref_wide b)
{
    tni_ref_wide product = tni_ref_wide_product(a.hi, b.hi);
    product.lo += a.hi * b.lo + a.lo * b.hi;
    return tni_ref_wide_tidy(product);
}

static inline tni_ref_wide tni_ref_wide_divide(tni_ref_wide a, tni_ref_wide b)
{
    double quotient = a.hi / b.hi;
    tni_ref_wide rest = tni_ref_wide_product(-quotient, b.hi);
    rest = tni_ref_wide_plus(rest, a);
    rest.lo -= quotient * b.lo;
    return tni_ref_wide_tidy((tni_ref_wide){quotient, tni_ref_wide_round(rest) / b.hi});
}

/* 1 / sqrt(a) */
static inline tni_ref_wide tni_ref_wide_rsqrt(tni_ref_wide a)
{
    double root = 1 / sqrt(a.hi);
    tni_ref_wide near_one = tni_ref_wide_times(tni_ref_wide_product(root, root), a);
    near_one = tni_ref_wide_add(near_one, -1);
    return tni_ref_wide_tidy((tni_ref_wide){root, -0.5 * root * tni_ref_wide_round(near_one)});
}

#endif
