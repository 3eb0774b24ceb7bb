/* The part of unary_tmpl.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */
#include "tenon/module/op/unary.h"

#define EACH(expression)                     \
    for (int64_t i = 0; i < n; i += WIDTH) { \
        VECTOR v = F(load)(x + i);           \
        fetch(x + i, next);                  \
        F(store)(y + i, expression);         \
    }                                        \
    break

static void F(unary_block)(int32_t kind, const REAL *x, REAL *y, int64_t n, int64_t next)
{
    const VECTOR zero = {0}, one = F(splat)(1);
    switch (kind) {
    case TN_UNARY_NEG: EACH(-v);
    case TN_UNARY_ABS: EACH(F(size_of)(v));
    case TN_UNARY_SQRT: EACH(F(sqrt)(v));
    case TN_UNARY_RSQRT: EACH(one / F(sqrt)(v));
    case TN_UNARY_EXP: EACH(F(exp)(v));
    case TN_UNARY_LOG: EACH(F(log)(v));
    case TN_UNARY_TANH: EACH(F(tanh)(v));
    case TN_UNARY_SIGMOID: EACH(F(sigmoid)(v));
    case TN_UNARY_RELU: EACH(F(choose)(v < zero, zero, v));
    case TN_UNARY_GELU: EACH(F(gelu)(v));
    case TN_UNARY_GELU_TANH: EACH(F(gelu_tanh)(v));
    case TN_UNARY_SILU: EACH(F(silu)(v));
    default: break;
    }
}
#undef EACH

static void F(unary_part)(const strand *in, const strand *out, int32_t kind, int64_t at, int64_t n)
{
    _Alignas(64) REAL room[BLOCK], other[BLOCK];
    const REAL *x = F(read_block)(in, at, n, room);
    REAL *y = F(block_room)(out, at, n, other);
    F(unary_block)(kind, x, y, n, in->next);
    F(write_block)(out, at, n, y);
}
