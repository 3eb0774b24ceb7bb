/* Numbers of a dtype, as a loop in C reads and writes them. */
#include "einsum_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int einsum_integer_bits(tn_dtype dtype)
{
    switch (dtype) {
    case TN_I8: return -8;
    case TN_I16: return -16;
    case TN_I32: return -32;
    case TN_I64: return -64;
    case TN_U8: return 8;
    case TN_U16: return 16;
    case TN_U32: return 32;
    case TN_U64: return 64;
    default: return 0;
    }
}

bool einsum_is_complex(tn_dtype dtype)
{
    return dtype == TN_C64 || dtype == TN_C128;
}

size_t einsum_part_bytes(tn_dtype dtype)
{
    const int bits = einsum_integer_bits(dtype);
    switch (dtype) {
    case TN_F64:
    case TN_C128: return 8;
    case TN_F32:
    case TN_C64: return 4;
    default: return bits ? (size_t)abs(bits) / 8 : 2;
    }
}

/* The half nearest to a multiple of 1/128 from -1 to 1, which both halves have exactly. */
static uint16_t encode_half(tn_dtype dtype, double value)
{
    int exponent;
    const double part = frexp(fabs(value), &exponent);
    const uint16_t sign = value < 0 ? 0x8000 : 0;
    if (value == 0)
        return 0;
    if (dtype == TN_BF16)
        return (uint16_t)(sign | (exponent + 126) << 7 | ((int)(part * 256) & 0x7F));
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)(part * 2048) & 0x3FF));
}

static double decode_half(tn_dtype dtype, uint16_t bits)
{
    const int digits = dtype == TN_BF16 ? 7 : 10, bias = dtype == TN_BF16 ? 127 : 15;
    const int exponent = (bits & 0x7FFF) >> digits, part = bits & ((1 << digits) - 1);
    const int last = dtype == TN_BF16 ? 255 : 31;
    const double size = exponent == last ? (part ? (double)NAN : (double)INFINITY)
                        : exponent       ? ldexp(part + (1 << digits), exponent - bias - digits)
                                         : ldexp(part, 1 - bias - digits);
    return bits >> 15 ? -size : size;
}

/* Writes a value that the dtype has exactly; integers wrap. */
static void encode(tn_dtype dtype, double value, unsigned char *to)
{
    const float f32 = (float)value;
    const uint64_t whole = (uint64_t)(int64_t)value;
    const uint16_t half = einsum_part_bytes(dtype) == 2 && !einsum_integer_bits(dtype)
                              ? encode_half(dtype, value)
                              : (uint16_t)whole;
    const uint32_t four = (uint32_t)whole;
    const uint8_t one = (uint8_t)whole;
    switch (einsum_part_bytes(dtype)) {
    case 8:
        memcpy(to, einsum_integer_bits(dtype) ? (const void *)&whole : (const void *)&value, 8);
        break;
    case 4:
        memcpy(to, einsum_integer_bits(dtype) ? (const void *)&four : (const void *)&f32, 4);
        break;
    case 2: memcpy(to, &half, 2); break;
    default: *to = one;
    }
}

double einsum_decode_float(tn_dtype dtype, const unsigned char *from)
{
    double f64;
    float f32;
    uint16_t half;
    switch (einsum_part_bytes(dtype)) {
    case 8: memcpy(&f64, from, 8); return f64;
    case 4: memcpy(&f32, from, 4); return f32;
    default: memcpy(&half, from, 2); return decode_half(dtype, half);
    }
}

uint64_t einsum_decode_integer(tn_dtype dtype, const unsigned char *from)
{
    uint64_t bits = 0;
    uint32_t four;
    uint16_t two;
    switch (einsum_part_bytes(dtype)) {
    case 8: memcpy(&bits, from, 8); return bits;
    case 4: memcpy(&four, from, 4); return four;
    case 2: memcpy(&two, from, 2); return two;
    default: return *from;
    }
}

/* A random value of one of `operands` operands: integers from -4 to 4, or 0 to 8, or with many operands
 * from -1 to 1, so that products have exact numbers; floats from -1 to 1. */
static double choose_value(tn_dtype dtype, int32_t operands, double uniform)
{
    const int bits = einsum_integer_bits(dtype);
    const double most = operands > 8 ? 1 : 4, values = operands > 8 && bits > 0 ? 2 : 2 * most + 1;
    if (bits)
        return (double)(int)(uniform * values) - (bits < 0 ? most : 0);
    if (einsum_part_bytes(dtype) == 2)
        return (double)(int)(uniform * 257) / 128 - 1;
    return einsum_part_bytes(dtype) == 4 ? (double)(float)(2 * uniform - 1) : 2 * uniform - 1;
}

tn_status einsum_values_make(const einsum_problem *of, int32_t term, tn_generator *random,
                             tn_tensor *out, double **out_values, tn_error *err)
{
    const tn_dtype dtype = of->dtype;
    const size_t part = einsum_part_bytes(dtype);
    int64_t count;
    uint64_t bytes;
    tn_status status = tn_tensor_create(of->device, dtype, of->operands.shapes[term],
                                        of->operands.tensors[term].ndim, out, err);
    if (!status)
        status = tn_tensor_elements(out, &count, err);
    if (!status)
        status = tn_tensor_bytes(out, &bytes, err);
    if (status)
        return status;
    const int64_t parts = count * (einsum_is_complex(dtype) ? 2 : 1);
    double *values = *out_values = calloc((size_t)parts + 1, sizeof *values);
    unsigned char *host = malloc((size_t)bytes + 1);
    status = values && host ? tn_random_fill_uniform(random, TN_F64, values, parts, err)
                            : tn_fail(err, TN_OUT_OF_MEMORY, 0, "einsum", "out of memory for %s",
                                      "the values of an operand");
    for (int64_t i = 0; i < parts && !status; i++) {
        values[i] = choose_value(dtype, of->operands.count, values[i]);
        encode(dtype, values[i], host + (size_t)i * part);
    }
    if (!status)
        status = tn_tensor_write(out, host, bytes, err);
    free(host);
    return status;
}
