/* Kernel rows of attention and attention-backward of bf16 and f16. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_ROWS_LOW_H
#define TENON_BACKENDS_CPU_ATTENTION_ROWS_LOW_H

#include "attention_low.h"

typedef struct tni_at_low_row {
    tn_kernel_row row;     /* must be first: the functions get a pointer to it */
    const tni_at_set *own; /* NULL: all is widened */
    const tni_at_set *base;
    const tni_at_half *half; /* replaces functions of base, if widened or for few rows */
} tni_at_low_row;

/* A row of attention-backward: always widened. */
typedef struct tni_at_low_back_row {
    tn_kernel_row row; /* must be first */
    const tni_at_back_set *base;
    const tni_at_half *half;
} tni_at_low_back_row;

/* Every row of this build, the preferred ones first: dtype, instruction set. For
 * attention-backward, only those that widen. */
#define TNI_AT_LOW_BACK_LIST(X) \
    TNI_AT_LOW_AVX512(X)        \
    TNI_AT_LOW_AVX2(X)          \
    X(bf16, plain) X(f16, plain)
#define TNI_AT_LOW_LIST(X)    \
    TNI_AT_LOW_AMX(X)         \
    TNI_AT_LOW_AVX512_BF16(X) \
    TNI_AT_LOW_AVX512(X)      \
    TNI_AT_LOW_AVX2(X)        \
    X(bf16, plain) X(f16, plain)
#if defined(TENON_ISA_AMX)
#define TNI_AT_LOW_AMX(X) X(bf16, amx)
#else
#define TNI_AT_LOW_AMX(X)
#endif
#if defined(TENON_ISA_AVX512_BF16)
#define TNI_AT_LOW_AVX512_BF16(X) X(bf16, avx512_bf16)
#else
#define TNI_AT_LOW_AVX512_BF16(X)
#endif
#if defined(TENON_ISA_AVX512)
#define TNI_AT_LOW_AVX512(X) X(bf16, avx512) X(f16, avx512)
#else
#define TNI_AT_LOW_AVX512(X)
#endif
#if defined(TENON_ISA_AVX2)
#define TNI_AT_LOW_AVX2(X) X(bf16, avx2) X(f16, avx2)
#else
#define TNI_AT_LOW_AVX2(X)
#endif

#define TNI_AT_LOW_DECLARE_(dtype, isa) extern const tni_at_low_row tni_at_low_##dtype##_##isa;
TNI_AT_LOW_LIST(TNI_AT_LOW_DECLARE_)
#undef TNI_AT_LOW_DECLARE_

#define TNI_AT_LOW_DECLARE_(dtype, isa) \
    extern const tni_at_low_back_row tni_at_low_back_##dtype##_##isa;
TNI_AT_LOW_BACK_LIST(TNI_AT_LOW_DECLARE_)
#undef TNI_AT_LOW_DECLARE_

#endif
