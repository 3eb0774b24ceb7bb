/* Element types, encoded as in DLPack: code, bits, lanes.
 * Thread-safety: constants. */
#ifndef TENON_MODULE_DTYPE_H
#define TENON_MODULE_DTYPE_H

#include "abi.h"

TN_BEGIN_DECLS

/* code in the low byte, bits in the next, lanes in the upper half: the bytes of a DLDataType on a
 * little-endian machine. 0 is no dtype and terminates lists. */
typedef uint32_t tn_dtype;

#define TN_DTYPE(code, bits, lanes) \
    ((uint32_t)(code) | (uint32_t)(bits) << 8 | (uint32_t)(lanes) << 16)

enum {
    TN_DTYPE_CODE_INT = 0,
    TN_DTYPE_CODE_UINT = 1,
    TN_DTYPE_CODE_FLOAT = 2,
    TN_DTYPE_CODE_BFLOAT = 4,
    TN_DTYPE_CODE_COMPLEX = 5,
    TN_DTYPE_CODE_BOOL = 6,
    TN_DTYPE_CODE_F8_E4M3FN = 10,
    TN_DTYPE_CODE_F8_E4M3FNUZ = 11,
    TN_DTYPE_CODE_F8_E5M2 = 12,
    TN_DTYPE_CODE_F8_E5M2FNUZ = 13
};

#define TN_DTYPE_LIST(X)                                           \
    X(TN_I8, "i8", TN_DTYPE_CODE_INT, 8)                           \
    X(TN_I16, "i16", TN_DTYPE_CODE_INT, 16)                        \
    X(TN_I32, "i32", TN_DTYPE_CODE_INT, 32)                        \
    X(TN_I64, "i64", TN_DTYPE_CODE_INT, 64)                        \
    X(TN_U8, "u8", TN_DTYPE_CODE_UINT, 8)                          \
    X(TN_U16, "u16", TN_DTYPE_CODE_UINT, 16)                       \
    X(TN_U32, "u32", TN_DTYPE_CODE_UINT, 32)                       \
    X(TN_U64, "u64", TN_DTYPE_CODE_UINT, 64)                       \
    X(TN_F16, "f16", TN_DTYPE_CODE_FLOAT, 16)                      \
    X(TN_F32, "f32", TN_DTYPE_CODE_FLOAT, 32)                      \
    X(TN_F64, "f64", TN_DTYPE_CODE_FLOAT, 64)                      \
    X(TN_BF16, "bf16", TN_DTYPE_CODE_BFLOAT, 16)                   \
    X(TN_C64, "c64", TN_DTYPE_CODE_COMPLEX, 64)                    \
    X(TN_C128, "c128", TN_DTYPE_CODE_COMPLEX, 128)                 \
    X(TN_BOOL, "bool", TN_DTYPE_CODE_BOOL, 8)                      \
    X(TN_F8_E4M3FN, "f8_e4m3fn", TN_DTYPE_CODE_F8_E4M3FN, 8)       \
    X(TN_F8_E4M3FNUZ, "f8_e4m3fnuz", TN_DTYPE_CODE_F8_E4M3FNUZ, 8) \
    X(TN_F8_E5M2, "f8_e5m2", TN_DTYPE_CODE_F8_E5M2, 8)             \
    X(TN_F8_E5M2FNUZ, "f8_e5m2fnuz", TN_DTYPE_CODE_F8_E5M2FNUZ, 8)

enum {
#define TN_DTYPE_ENUM_(name, word, code, bits) name = TN_DTYPE(code, bits, 1),
    TN_DTYPE_LIST(TN_DTYPE_ENUM_)
#undef TN_DTYPE_ENUM_
        TN_DTYPE_NONE = 0
};

TN_END_DECLS

#endif
