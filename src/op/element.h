/* Reads and writes single elements as numbers, to compare and to generate data: exact, not fast. */
#ifndef TNI_OP_ELEMENT_H
#define TNI_OP_ELEMENT_H

#include "tenon/module/dtype.h"

#include <math.h>
#include <stdbool.h>

/* The value of an element; the imaginary part of a real number is 0. Integers above 2^53 are rounded: to
 * compare them exactly, compare bytes. */
typedef struct tni_number {
    double re, im;
} tni_number;

/* Like the macros of <math.h>, which on some systems convert their argument to float. */
static inline bool tni_is_nan(double x)
{
    return x != x;
}

static inline bool tni_is_infinite(double x)
{
    return x == (double)INFINITY || x == -(double)INFINITY;
}

/* `at` may have any alignment. */
tni_number tni_element_read(tn_dtype dtype, const void *at);

/* Rounds to nearest even. Out-of-range values become infinite; they saturate for integers and for dtypes
 * without infinity. NaN becomes 0 for integers. For bool, every value except 0 becomes 1. */
void tni_element_write(tn_dtype dtype, tni_number value, void *at);

bool tni_dtype_is_complex(tn_dtype dtype);
bool tni_dtype_is_integer(tn_dtype dtype); /* also for bool */

/* The unit roundoff, half of the distance from 1 to the next number: 2^-24 for f32. For complex dtypes,
 * that of their parts; 0 for integers. */
double tni_dtype_roundoff(tn_dtype dtype);

/* The least positive number, which may be subnormal. */
double tni_dtype_least(tn_dtype dtype);

/* The dtype that elementwise ops compute in: f32 for narrower floats, else the dtype itself. */
tn_dtype tni_dtype_work(tn_dtype dtype);

#endif
