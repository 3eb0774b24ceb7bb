/* Single elements as numbers, for whoever compares or makes up data: exact, not fast. */
#ifndef TNI_DISPATCH_ELEMENT_H
#define TNI_DISPATCH_ELEMENT_H

#include "tenon/module/dtype.h"

#include <math.h>
#include <stdbool.h>

/* What an element stands for; the imaginary part of what is not complex is 0. Integers above 2^53 are
 * rounded: who wants them exact compares bytes. */
typedef struct tni_number {
    double re, im;
} tni_number;

/* As the macros of <math.h>, which on some systems convert what they are given to float. */
static inline bool tni_is_nan(double x)
{
    return x != x;
}

static inline bool tni_is_infinite(double x)
{
    return x == (double)INFINITY || x == -(double)INFINITY;
}

/* `at` needs no alignment. */
tni_number tni_element_read(tn_dtype dtype, const void *at);

/* To nearest even. What is too great becomes infinite, or the greatest there is where there is no
 * infinity and for integers; a NaN becomes 0 as an integer. */
void tni_element_write(tn_dtype dtype, tni_number value, void *at);

bool tni_dtype_is_complex(tn_dtype dtype);
bool tni_dtype_is_integer(tn_dtype dtype); /* bool too */

/* Half of what the next number after 1 differs from it: 2^-24 for f32, of complex numbers for their
 * parts; 0 for integers. */
double tni_dtype_roundoff(tn_dtype dtype);

/* The least number above 0. */
double tni_dtype_least(tn_dtype dtype);

/* What ops on elements compute in: f32 for all floats that are narrower. */
tn_dtype tni_dtype_work(tn_dtype dtype);

#endif
