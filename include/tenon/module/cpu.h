/* Processor features, as bits that kernels of the cpu platform require.
 * Thread-safety: constants. */
#ifndef TENON_MODULE_CPU_H
#define TENON_MODULE_CPU_H

#include "abi.h"

/* Name, bit, word in reports and masks. A bit is set only if the instructions exist, the system
 * saves their registers, and every feature that this one depends on is set too; for AMX, only once
 * the process has the system's permission. Bits are never reused. */
#define TN_CPU_FEATURE_LIST(X)        \
    X(SSE2, 0, "sse2")                \
    X(SSE41, 1, "sse4.1")             \
    X(AVX, 2, "avx")                  \
    X(F16C, 3, "f16c")                \
    X(FMA, 4, "fma")                  \
    X(AVX2, 5, "avx2")                \
    X(SHA, 6, "sha")                  \
    X(AVX_VNNI, 7, "avx-vnni")        \
    X(AVX512F, 8, "avx512f")          \
    X(AVX512BW, 9, "avx512bw")        \
    X(AVX512DQ, 10, "avx512dq")       \
    X(AVX512VL, 11, "avx512vl")       \
    X(AVX512_VNNI, 12, "avx512-vnni") \
    X(AVX512_BF16, 13, "avx512-bf16") \
    X(AVX512_FP16, 14, "avx512-fp16") \
    X(AMX_TILE, 15, "amx-tile")       \
    X(AMX_INT8, 16, "amx-int8")       \
    X(AMX_BF16, 17, "amx-bf16")       \
    X(NEON, 18, "neon")               \
    X(ARM_SHA2, 19, "arm-sha2")       \
    X(ARM_FP16, 20, "arm-fp16")       \
    X(ARM_DOTPROD, 21, "arm-dotprod") \
    X(ARM_BF16, 22, "arm-bf16")       \
    X(ARM_I8MM, 23, "arm-i8mm")       \
    X(SVE, 24, "sve")                 \
    X(SVE2, 25, "sve2")

enum {
#define TN_CPU_INDEX_(name, bit, word) TN_CPU_INDEX_##name = bit,
    TN_CPU_FEATURE_LIST(TN_CPU_INDEX_)
#undef TN_CPU_INDEX_
        TN_CPU_FEATURE_COUNT
};
#define TN_CPU_BIT(name) (UINT64_C(1) << TN_CPU_INDEX_##name)

#endif
