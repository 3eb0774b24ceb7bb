/* Whole numbers that sizes are made of. */
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

/* How many parts of that size, the last of which may be smaller. */
static inline int64_t parts(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

static inline int64_t round_up(int64_t n, int64_t to)
{
    return parts(n, to) * to;
}

/* Bytes in whole lines of a cache. */
static inline int64_t line(int64_t bytes)
{
    return round_up(bytes, 64);
}

/* Bytes of an element; 0 of dtype 0. Of those that have whole bytes. */
static inline int64_t dtype_bytes(tn_dtype dtype)
{
    return (int64_t)(dtype >> 8 & 255) / 8;
}

#endif
