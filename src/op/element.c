#include "element.h"

/* Formats of floats of at most 16 bits: sizes of the fields, and the meaning of the greatest exponent. */
typedef enum top { TOP_IEEE, TOP_ONE_NAN, TOP_NO_NEGATIVE_ZERO } top;
typedef struct format {
    tn_dtype dtype;
    int exponent, mantissa, bias;
    top top;
} format;

static const format formats[] = {
    {TN_F16, 5, 10, 15, TOP_IEEE},
    {TN_BF16, 8, 7, 127, TOP_IEEE},
    {TN_F8_E5M2, 5, 2, 15, TOP_IEEE},
    {TN_F8_E4M3FN, 4, 3, 7, TOP_ONE_NAN},
    {TN_F8_E4M3FNUZ, 4, 3, 8, TOP_NO_NEGATIVE_ZERO},
    {TN_F8_E5M2FNUZ, 5, 2, 16, TOP_NO_NEGATIVE_ZERO},
};

static const format *format_of(tn_dtype dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].dtype == dtype)
            return &formats[i];
    }
    return NULL;
}

static uint32_t sign_of(const format *f)
{
    return UINT32_C(1) << (f->exponent + f->mantissa);
}

/* Returns the bits of the greatest finite number, without its sign. */
static uint32_t greatest(const format *f)
{
    uint32_t all = sign_of(f) - 1;
    switch (f->top) {
    case TOP_IEEE: return all - (UINT32_C(1) << f->mantissa);
    case TOP_ONE_NAN: return all - 1;
    default: return all;
    }
}

static double decode(const format *f, uint32_t bits)
{
    uint32_t sign = sign_of(f), rest = bits & (sign - 1), most = greatest(f);
    if (f->top == TOP_NO_NEGATIVE_ZERO && bits == sign)
        return NAN;
    if (rest > most)
        return f->top == TOP_IEEE && rest == most + 1 ? (bits & sign ? -INFINITY : INFINITY) : NAN;
    uint32_t one = UINT32_C(1) << f->mantissa, fraction = rest & (one - 1);
    int exponent = (int)(rest >> f->mantissa);
    double value;
    if (exponent == 0) {
        value = ldexp((double)fraction, 1 - f->bias - f->mantissa);
    } else {
        uint64_t wide = (uint64_t)(exponent - f->bias + 1023) << 52 | (uint64_t)fraction
                                                                          << (52 - f->mantissa);
        memcpy(&value, &wide, sizeof value);
    }
    return bits & sign ? -value : value;
}

/* Adds the significand, including its leading 1, to an exponent field that is one too small: so a carry
 * from rounding increments the exponent, and subnormals need no special case. */
static uint32_t encode(const format *f, double value)
{
    uint32_t sign = copysign(1, value) < 0 ? sign_of(f) : 0, most = greatest(f), bits;
    uint32_t none = f->top == TOP_NO_NEGATIVE_ZERO ? sign_of(f) : sign_of(f) - 1;
    int exponent;
    if (tni_is_nan(value))
        return none;
    if (tni_is_infinite(value))
        return f->top == TOP_IEEE ? sign | (most + 1) : sign | most;
    if (value == 0)
        return f->top == TOP_NO_NEGATIVE_ZERO ? 0 : sign;
    (void)frexp(value, &exponent);
    int least = 1 - f->bias;
    exponent = exponent - 1 < least ? least : exponent - 1;
    if (exponent > f->bias + 1)
        return encode(f, copysign(1, value) < 0 ? -INFINITY : INFINITY);
    bits = (uint32_t)(exponent - least) << f->mantissa;
    bits += (uint32_t)rint(ldexp(fabs(value), f->mantissa - exponent));
    if (bits > most)
        bits = f->top == TOP_IEEE ? most + 1 : most;
    return bits == 0 && f->top == TOP_NO_NEGATIVE_ZERO ? 0 : sign | bits;
}

#define READ(type)                          \
    do {                                    \
        type value_;                        \
        memcpy(&value_, at, sizeof value_); \
        out.re = (double)value_;            \
    } while (0)

static tni_number read_complex(tn_dtype dtype, const void *at)
{
    if (dtype == TN_C64) {
        float parts[2];
        memcpy(parts, at, sizeof parts);
        return (tni_number){(double)parts[0], (double)parts[1]};
    }
    tni_number out;
    memcpy(&out, at, sizeof out);
    return out;
}

tni_number tni_element_read(tn_dtype dtype, const void *at)
{
    tni_number out = {0, 0};
    const format *f;
    switch (dtype) {
    case TN_F32: READ(float); break;
    case TN_F64: READ(double); break;
    case TN_C64:
    case TN_C128: return read_complex(dtype, at);
    case TN_I8: READ(int8_t); break;
    case TN_I16: READ(int16_t); break;
    case TN_I32: READ(int32_t); break;
    case TN_I64: READ(int64_t); break;
    case TN_BOOL:
    case TN_U8: READ(uint8_t); break;
    case TN_U16: READ(uint16_t); break;
    case TN_U32: READ(uint32_t); break;
    case TN_U64: READ(uint64_t); break;
    default:
        f = format_of(dtype);
        if (f) {
            const unsigned char *bytes = at;
            uint16_t word = bytes[0];
            if (f->exponent + f->mantissa > 8)
                memcpy(&word, at, sizeof word);
            out.re = decode(f, word);
        }
    }
    return out;
}

#define WRITE(type, low, high)                                 \
    do {                                                       \
        type value_ = (type)(tni_is_nan(x)         ? 0         \
                             : x <= (double)(low)  ? (low)     \
                             : x >= (double)(high) ? (high)    \
                                                   : (type)x); \
        memcpy(at, &value_, sizeof value_);                    \
    } while (0)

static void write_float(tn_dtype dtype, tni_number value, void *at)
{
    const format *f = format_of(dtype);
    float parts[2] = {(float)value.re, (float)value.im};
    if (dtype == TN_F64)
        memcpy(at, &value.re, sizeof value.re);
    else if (dtype == TN_F32)
        memcpy(at, parts, sizeof parts[0]);
    else if (dtype == TN_C64)
        memcpy(at, parts, sizeof parts);
    else if (dtype == TN_C128)
        memcpy(at, &value, sizeof value);
    else if (f && f->exponent + f->mantissa > 8)
        memcpy(at, &(uint16_t){(uint16_t)encode(f, value.re)}, sizeof(uint16_t));
    else if (f)
        *(unsigned char *)at = (unsigned char)encode(f, value.re);
}

void tni_element_write(tn_dtype dtype, tni_number value, void *at)
{
    double x = rint(value.re);
    switch (dtype) {
    case TN_I8: WRITE(int8_t, INT8_MIN, INT8_MAX); break;
    case TN_I16: WRITE(int16_t, INT16_MIN, INT16_MAX); break;
    case TN_I32: WRITE(int32_t, INT32_MIN, INT32_MAX); break;
    case TN_I64: WRITE(int64_t, INT64_MIN, INT64_MAX); break;
    case TN_U8: WRITE(uint8_t, 0, UINT8_MAX); break;
    case TN_U16: WRITE(uint16_t, 0, UINT16_MAX); break;
    case TN_U32: WRITE(uint32_t, 0, UINT32_MAX); break;
    case TN_U64: WRITE(uint64_t, 0, UINT64_MAX); break;
    case TN_BOOL: *(unsigned char *)at = value.re != 0; break;
    default: write_float(dtype, value, at);
    }
}

bool tni_dtype_is_complex(tn_dtype dtype)
{
    return dtype == TN_C64 || dtype == TN_C128;
}

bool tni_dtype_is_integer(tn_dtype dtype)
{
    unsigned code = dtype & 0xFF;
    return code == TN_DTYPE_CODE_INT || code == TN_DTYPE_CODE_UINT || code == TN_DTYPE_CODE_BOOL;
}

double tni_dtype_roundoff(tn_dtype dtype)
{
    const format *f = format_of(dtype);
    if (f)
        return ldexp(1, -1 - f->mantissa);
    switch (dtype) {
    case TN_F32:
    case TN_C64: return 0x1p-24;
    case TN_F64:
    case TN_C128: return 0x1p-53;
    default: return 0;
    }
}

double tni_dtype_least(tn_dtype dtype)
{
    const format *f = format_of(dtype);
    if (f)
        return ldexp(1, 1 - f->bias - f->mantissa);
    switch (dtype) {
    case TN_F32:
    case TN_C64: return 0x1p-149;
    case TN_F64:
    case TN_C128: return 0x1p-1074;
    default: return 1;
    }
}

tn_dtype tni_dtype_work(tn_dtype dtype)
{
    return format_of(dtype) ? TN_F32 : dtype;
}
