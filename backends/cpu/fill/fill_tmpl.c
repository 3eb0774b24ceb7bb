#include "../shared/loop.h"

enum { PATTERN = 64 }; /* bytes: a multiple of every element size */

static void fill_body(const loop *it, char *const *data, int64_t at, int64_t n)
{
    const char *pattern = it->more;
    int32_t size = it->size[0];
    (void)at;
    if (it->walk.stride[0] != 1) {
        move_strided(data[0], it->walk.stride[0], pattern, 0, n, size);
        return;
    }
    int64_t bytes = n * size, i = 0;
    vf value = load_f32(pattern);
    for (; i + (int64_t)sizeof value <= bytes; i += (int64_t)sizeof value)
        store_f32(data[0] + i, value);
    memcpy(data[0] + i, pattern, (size_t)(bytes - i));
}

/* Converts a number to an integer's bits: truncates towards zero, saturates; NaN becomes 0. */
static uint64_t whole_bits(double x, int32_t bits, bool is_signed)
{
    double limit = ldexp(1, is_signed ? bits - 1 : bits), low = is_signed ? -limit : 0;
    if (x != x)
        return 0;
    x = trunc(x);
    if (x >= limit)
        return is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    x = x < low ? low : x;
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

/* Rounds to f32 so that a further rounding gives the correct result (round to odd): truncates, and
 * sets the lowest bit if the result is inexact. */
static float cut_to_odd(double x)
{
    float near = (float)x;
    uint32_t bits;
    if (x != x || (double)near == x)
        return near;
    memcpy(&bits, &near, sizeof bits);
    bits -= fabs((double)near) > fabs(x); /* towards zero; infinity becomes the greatest number */
    bits |= 1;
    memcpy(&near, &bits, sizeof bits);
    return near;
}

/* Writes one element of the value. */
static void write_value(const tn_elementwise_op *op, tn_dtype dtype, char *to)
{
    float parts[] = {(float)op->value, (float)op->imaginary};
    double wide[] = {op->value, op->imaginary};
    uint32_t code = dtype & 255, bits = dtype >> 8 & 255;
    uint64_t whole_number = dtype == TN_BOOL ? op->value != 0 : 0;
    if (code == TN_DTYPE_CODE_INT || code == TN_DTYPE_CODE_UINT)
        whole_number = whole_bits(op->value, (int32_t)bits, code == TN_DTYPE_CODE_INT);
    vf exact = splat_f32(cut_to_odd(op->value));
    vh half = dtype == TN_BF16 ? narrow_bf16(exact) : narrow_f16(exact);
    switch (dtype) {
    case TN_F32: memcpy(to, parts, 4); break;
    case TN_F64: memcpy(to, wide, 8); break;
    case TN_C64: memcpy(to, parts, 8); break;
    case TN_C128: memcpy(to, wide, 16); break;
    case TN_BF16:
    case TN_F16: memcpy(to, &half, 2); break;
    default: memcpy(to, &whole_number, bits / 8); /* little-endian: the low bytes come first */
    }
}

ISA_KERNEL(fill)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT};
    char pattern[PATTERN];
    loop it = {.body = fill_body, .more = pattern};
    (void)err;
    loop_prepare(&it, run, operands, 1, 0, 1);
    write_value(TN_PARAMS(run->op, elementwise), run->op->operand[TN_ELEMENTWISE_OUT].dtype,
                pattern);
    for (int32_t i = it.size[0]; i < PATTERN; i++)
        pattern[i] = pattern[i - it.size[0]];
    loop_run(&it);
    return TN_OK;
}
