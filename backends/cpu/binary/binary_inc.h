/* The part of binary_tmpl.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */
#include "tenon/module/op/binary.h"

/* max and min return NaN if either operand is NaN; the sum propagates it. */
INLINE VECTOR F(max_or_nan)(VECTOR a, VECTOR b)
{
    return F(choose)(F(is_nan)(a) | F(is_nan)(b), a + b, F(greater)(a, b));
}

INLINE VECTOR F(min_or_nan)(VECTOR a, VECTOR b)
{
    return F(choose)(F(is_nan)(a) | F(is_nan)(b), a + b, F(lesser)(a, b));
}

#define EACH(expression)                               \
    for (int64_t i = 0; i < n; i += WIDTH) {           \
        VECTOR v = F(load)(x + i), w = F(load)(y + i); \
        fetch(x + i, next);                            \
        fetch(y + i, next);                            \
        F(store)(z + i, expression);                   \
    }                                                  \
    break

static void F(binary_block)(int32_t kind, const REAL *x, const REAL *y, REAL *z, int64_t n,
                            int64_t next)
{
    switch (kind) {
    case TN_BINARY_ADD: EACH(v + w);
    case TN_BINARY_SUB: EACH(v - w);
    case TN_BINARY_MUL: EACH(v * w);
    case TN_BINARY_DIV: EACH(v / w);
    case TN_BINARY_MAX: EACH(F(max_or_nan)(v, w));
    case TN_BINARY_MIN: EACH(F(min_or_nan)(v, w));
    default: break;
    }
}
#undef EACH

static void F(binary_part)(const strand *in, const strand *with, const strand *out, int32_t kind,
                           int64_t at, int64_t n)
{
    _Alignas(64) REAL room[BLOCK], second[BLOCK], other[BLOCK];
    const REAL *x = F(read_block)(in, at, n, room), *y = F(read_block)(with, at, n, second);
    REAL *z = F(block_room)(out, at, n, other);
    F(binary_block)(kind, x, y, z, n, in->next);
    F(write_block)(out, at, n, z);
}
