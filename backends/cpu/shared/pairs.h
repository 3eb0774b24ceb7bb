/* Pairs of vectors, and conversion of f32, f16 or bf16 elements to f32 and back in registers, a
 * pair at a time; f64 with the same names. A dtype argument is always a compile-time constant
 * here. */
#ifndef TENON_BACKENDS_CPU_PAIRS_H
#define TENON_BACKENDS_CPU_PAIRS_H

#include "vector.h"

enum { GROUP = 2 * LANES }; /* elements: a pair of f32, two pairs of f64 */

typedef struct pair_f32 {
    vf a, b;
} pair_f32;

typedef struct pair_f64 {
    vd a, b;
} pair_f64;

/* bf16 in another order: in a pair, a has the elements at even positions, b those at odd ones. It
 * is cheaper, and is for computations that do not depend on an element's position. */
#define SPLIT_BF16 (TN_BF16 | (tn_dtype)1 << 31)

/* Bytes of an element. */
INLINE int32_t size_of_dtype(tn_dtype dtype)
{
    return (int32_t)(dtype >> 8 & 255) / 8;
}

/* Prefetches from `next` bytes ahead, while there is something to compute, so that the later read
 * does not wait. Any address is allowed. */
INLINE void fetch(const void *at, int64_t next)
{
    __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)next), 0, 3);
}

/* Prefetches for a pair of elements that are `size` bytes wide. */
INLINE void fetch_pair(const void *at, int64_t next, int32_t size)
{
    for (int32_t i = 0; i < GROUP * size; i += 64)
        fetch((const char *)at + i, next);
}

INLINE pair_f32 load_pair_f32(tn_dtype dtype, const char *from)
{
    const char *more = from + 2 * LANES;
    const vu both = load_u32(from);
    switch (dtype) {
    case SPLIT_BF16: return (pair_f32){(vf)(both << 16), (vf)(both & 0xffff0000)};
    case TN_BF16: return (pair_f32){widen_bf16(load_u16(from)), widen_bf16(load_u16(more))};
    case TN_F16: return (pair_f32){widen_f16(load_u16(from)), widen_f16(load_u16(more))};
    default: return (pair_f32){(vf)both, load_f32(from + sizeof both)};
    }
}

INLINE pair_f64 load_pair_f64(tn_dtype dtype, const char *from)
{
    (void)dtype;
    return (pair_f64){load_f64(from), load_f64(from + sizeof(vd))};
}

/* Uses a non-temporal store if `stream`: then `to` must be aligned to a vector. */
INLINE void save_vector(char *to, vu v, bool stream)
{
    if (stream)
        stream_vector(to, v);
    else
        store_u32(to, v);
}

INLINE void save_pair_f32(tn_dtype dtype, char *to, pair_f32 v, bool stream)
{
    switch (dtype) {
    case TN_BF16: save_vector(to, join_high(round_bf16(v.a), round_bf16(v.b)), stream); break;
    case TN_F16: save_vector(to, join_u16(narrow_f16(v.a), narrow_f16(v.b)), stream); break;
    default: save_vector(to, (vu)v.a, stream); save_vector(to + sizeof v.a, (vu)v.b, stream);
    }
}

INLINE void save_pair_f64(tn_dtype dtype, char *to, pair_f64 v, bool stream)
{
    (void)dtype;
    save_vector(to, (vu)v.a, stream);
    save_vector(to + sizeof v.a, (vu)v.b, stream);
}

/* The first n lanes, and `value` in the others. */
INLINE vf first_lanes_f32(vf v, int64_t n, float value)
{
    static const int32_t places[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return choose_f32(load_i32(places) < (vi){0} + (int32_t)n, v, splat_f32(value));
}

INLINE vd first_lanes_f64(vd v, int64_t n, double value)
{
    static const int64_t places[] = {0, 1, 2, 3, 4, 5, 6, 7};
    vl place;
    memcpy(&place, places, sizeof place);
    return choose_f64(place < (vl){0} + n, v, splat_f64(value));
}

INLINE pair_f32 first_f32(pair_f32 v, int64_t n, float value)
{
    return (pair_f32){first_lanes_f32(v.a, n, value), first_lanes_f32(v.b, n - LANES, value)};
}

INLINE pair_f64 first_f64(pair_f64 v, int64_t n, double value)
{
    return (pair_f64){first_lanes_f64(v.a, n, value), first_lanes_f64(v.b, n - DOUBLES, value)};
}

#endif
