#include "ref_element.h"

#include "ref_number.h"

/* A function for every dtype: `value` is the conversion of an element `v`. */
#define READ(NAME, type, value)                                                        \
    static void read_##NAME(const char *from, int64_t step, int64_t count, double *to) \
    {                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                          \
            type v;                                                                    \
            memcpy(&v, from + i * step, sizeof v);                                     \
            to[i] = (value);                                                           \
        }                                                                              \
    }
#define WRITE(NAME, type, value)                                                        \
    static void write_##NAME(const double *from, int64_t count, char *to, int64_t step) \
    {                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                           \
            const double v = from[i];                                                   \
            const type element = (type)(value);                                         \
            memcpy(to + i * step, &element, sizeof element);                            \
        }                                                                               \
    }
#define READ_WHOLE(NAME, type, value)                                                         \
    static void read_whole_##NAME(const char *from, int64_t step, int64_t count, int64_t *to) \
    {                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                 \
            type v;                                                                           \
            memcpy(&v, from + i * step, sizeof v);                                            \
            to[i] = (int64_t)(value);                                                         \
        }                                                                                     \
    }
#define WRITE_WHOLE(NAME, type, value)                                                         \
    static void write_whole_##NAME(const int64_t *from, int64_t count, char *to, int64_t step) \
    {                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                  \
            const int64_t v = from[i];                                                         \
            const type element = (type)(value);                                                \
            memcpy(to + i * step, &element, sizeof element);                                   \
        }                                                                                      \
    }

#define WHOLE(NAME, type, rounded) \
    READ(NAME, type, (double)v)    \
    WRITE(NAME, type, rounded)     \
    READ_WHOLE(NAME, type, v)      \
    WRITE_WHOLE(NAME, type, (uint64_t)v)
WHOLE(TN_I8, int8_t, tni_ref_to_signed(v, INT8_MIN, INT8_MAX))
WHOLE(TN_I16, int16_t, tni_ref_to_signed(v, INT16_MIN, INT16_MAX))
WHOLE(TN_I32, int32_t, tni_ref_to_signed(v, INT32_MIN, INT32_MAX))
WHOLE(TN_I64, int64_t, tni_ref_to_signed(v, INT64_MIN, INT64_MAX))
WHOLE(TN_U8, uint8_t, tni_ref_to_unsigned(v, UINT8_MAX))
WHOLE(TN_U16, uint16_t, tni_ref_to_unsigned(v, UINT16_MAX))
WHOLE(TN_U32, uint32_t, tni_ref_to_unsigned(v, UINT32_MAX))
WHOLE(TN_U64, uint64_t, tni_ref_to_unsigned(v, UINT64_MAX))

READ(TN_BOOL, uint8_t, v != 0)
WRITE(TN_BOOL, uint8_t, v != 0)
READ_WHOLE(TN_BOOL, uint8_t, v != 0)
WRITE_WHOLE(TN_BOOL, uint8_t, v != 0)

#define SMALL(NAME, type, format)                     \
    READ(NAME, type, tni_ref_small_value(&format, v)) \
    WRITE(NAME, type, tni_ref_small_code(&format, v))
SMALL(TN_F16, uint16_t, tni_ref_f16)
SMALL(TN_BF16, uint16_t, tni_ref_bf16)
SMALL(TN_F8_E4M3FN, uint8_t, tni_ref_e4m3fn)
SMALL(TN_F8_E4M3FNUZ, uint8_t, tni_ref_e4m3fnuz)
SMALL(TN_F8_E5M2, uint8_t, tni_ref_e5m2)
SMALL(TN_F8_E5M2FNUZ, uint8_t, tni_ref_e5m2fnuz)

READ(TN_F32, float, (double)v)
WRITE(TN_F32, float, v)
READ(TN_F64, double, v)
WRITE(TN_F64, double, v)

#define COMPLEX(NAME, type)                                                             \
    static void read_##NAME(const char *from, int64_t step, int64_t count, double *to)  \
    {                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                           \
            type v[2];                                                                  \
            memcpy(v, from + i * step, sizeof v);                                       \
            to[2 * i] = (double)v[0];                                                   \
            to[2 * i + 1] = (double)v[1];                                               \
        }                                                                               \
    }                                                                                   \
    static void write_##NAME(const double *from, int64_t count, char *to, int64_t step) \
    {                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                           \
            const type v[2] = {(type)from[2 * i], (type)from[2 * i + 1]};               \
            memcpy(to + i * step, v, sizeof v);                                         \
        }                                                                               \
    }
COMPLEX(TN_C64, float)
COMPLEX(TN_C128, double)

#define ROW(NAME, sort, parts, bytes, read_whole, write_whole)                       \
    {                                                                                \
        NAME, sort, parts, bytes, read_##NAME, write_##NAME, read_whole, write_whole \
    }
#define WHOLE_ROW(NAME, sort, bytes) \
    ROW(NAME, sort, 1, bytes, read_whole_##NAME, write_whole_##NAME)
#define FLOAT_ROW(NAME, bytes)   ROW(NAME, TNI_REF_FLOAT, 1, bytes, NULL, NULL)
#define COMPLEX_ROW(NAME, bytes) ROW(NAME, TNI_REF_COMPLEX, 2, bytes, NULL, NULL)

/* The last entry means no dtype. */
static const tni_ref_element elements[] = {
    FLOAT_ROW(TN_F32, 4),
    FLOAT_ROW(TN_F64, 8),
    FLOAT_ROW(TN_F16, 2),
    FLOAT_ROW(TN_BF16, 2),
    COMPLEX_ROW(TN_C64, 8),
    COMPLEX_ROW(TN_C128, 16),
    WHOLE_ROW(TN_I8, TNI_REF_SIGNED, 1),
    WHOLE_ROW(TN_I16, TNI_REF_SIGNED, 2),
    WHOLE_ROW(TN_I32, TNI_REF_SIGNED, 4),
    WHOLE_ROW(TN_I64, TNI_REF_SIGNED, 8),
    WHOLE_ROW(TN_U8, TNI_REF_UNSIGNED, 1),
    WHOLE_ROW(TN_U16, TNI_REF_UNSIGNED, 2),
    WHOLE_ROW(TN_U32, TNI_REF_UNSIGNED, 4),
    WHOLE_ROW(TN_U64, TNI_REF_UNSIGNED, 8),
    WHOLE_ROW(TN_BOOL, TNI_REF_UNSIGNED, 1),
    FLOAT_ROW(TN_F8_E4M3FN, 1),
    FLOAT_ROW(TN_F8_E4M3FNUZ, 1),
    FLOAT_ROW(TN_F8_E5M2, 1),
    FLOAT_ROW(TN_F8_E5M2FNUZ, 1),
    {.dtype = TN_DTYPE_NONE},
};
enum { NONE = sizeof elements / sizeof elements[0] - 1 };

const tni_ref_element *tni_ref_element_of(tn_dtype dtype)
{
    size_t i = 0;
    while (i < NONE && elements[i].dtype != dtype)
        i++;
    return &elements[i];
}
