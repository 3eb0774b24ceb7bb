/* Integer functions for sizes. */
#ifndef TENON_BACKENDS_CPU_SIZES_H
#define TENON_BACKENDS_CPU_SIZES_H

#include "tenon/module/dtype.h"

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Number of parts of that size, rounded up; the last may be smaller. */
static inline int64_t parts(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

static inline int64_t round_up(int64_t n, int64_t to)
{
    return parts(n, to) * to;
}

/* Bytes, rounded up to whole cache lines. */
static inline int64_t line(int64_t bytes)
{
    return round_up(bytes, 64);
}

/* Bytes of an element; 0 for dtype 0. Only for dtypes of whole bytes. */
static inline int64_t dtype_bytes(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 255) / 8;
}

#endif
