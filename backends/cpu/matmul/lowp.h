/* Matmuls of i8, bf16 and f16: what instruction sets have for them, and their rows. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_H

#include "packed.h"

/* Instead of a set's own: from elements of another dtype. */
typedef struct tni_mm_packs {
    void (*pack_a)(const tni_mm_pack *job);
    void (*pack_b)(const tni_mm_pack *job);
} tni_mm_packs;

extern const tni_mm_set tni_mm_i8_plain;
extern const tni_mm_set tni_mm_i8_avx2;
extern const tni_mm_set tni_mm_i8_avx_vnni;
extern const tni_mm_set tni_mm_i8_avx512;
extern const tni_mm_set tni_mm_i8_avx512_vnni;
extern const tni_mm_set tni_mm_i8_amx;
extern const tni_mm_set tni_mm_i8_arm_dotprod;
extern const tni_mm_set tni_mm_bf16_avx512_bf16;
extern const tni_mm_set tni_mm_bf16_amx;

/* For the sets of f32. */
extern const tni_mm_packs tni_mm_bf16_plain;
extern const tni_mm_packs tni_mm_bf16_avx2;
extern const tni_mm_packs tni_mm_bf16_avx512;
extern const tni_mm_packs tni_mm_f16_plain;
extern const tni_mm_packs tni_mm_f16_avx2;
extern const tni_mm_packs tni_mm_f16_avx512;

/* A row, and what its functions work with. */
typedef struct tni_mm_row {
    tn_kernel_row row; /* first: it is what its functions are given */
    const tni_mm_set *set;
    const tni_mm_packs *packs; /* or NULL */
} tni_mm_row;

/*  Every row of this build: dtype, instruction set. */
#define TNI_MM_LOW_LIST(X)    \
    TNI_MM_LOW_AMX(X)         \
    TNI_MM_LOW_AVX512_VNNI(X) \
    TNI_MM_LOW_AVX512_BF16(X) \
    TNI_MM_LOW_AVX512(X)      \
    TNI_MM_LOW_AVX_VNNI(X)    \
    TNI_MM_LOW_AVX2(X)        \
    TNI_MM_LOW_ARM_DOTPROD(X) X(i8, plain) X(bf16, plain) X(f16, plain)
#if defined(TENON_ISA_AMX)
#define TNI_MM_LOW_AMX(X) X(i8, amx) X(bf16, amx)
#else
#define TNI_MM_LOW_AMX(X)
#endif
#if defined(TENON_ISA_AVX512_VNNI)
#define TNI_MM_LOW_AVX512_VNNI(X) X(i8, avx512_vnni)
#else
#define TNI_MM_LOW_AVX512_VNNI(X)
#endif
#if defined(TENON_ISA_AVX512_BF16)
#define TNI_MM_LOW_AVX512_BF16(X) X(bf16, avx512_bf16)
#else
#define TNI_MM_LOW_AVX512_BF16(X)
#endif
#if defined(TENON_ISA_AVX512)
#define TNI_MM_LOW_AVX512(X) X(i8, avx512) X(bf16, avx512) X(f16, avx512)
#else
#define TNI_MM_LOW_AVX512(X)
#endif
#if defined(TENON_ISA_AVX_VNNI)
#define TNI_MM_LOW_AVX_VNNI(X) X(i8, avx_vnni)
#else
#define TNI_MM_LOW_AVX_VNNI(X)
#endif
#if defined(TENON_ISA_AVX2)
#define TNI_MM_LOW_AVX2(X) X(i8, avx2) X(bf16, avx2) X(f16, avx2)
#else
#define TNI_MM_LOW_AVX2(X)
#endif
#if defined(TENON_ISA_ARM_DOTPROD)
#define TNI_MM_LOW_ARM_DOTPROD(X) X(i8, arm_dotprod)
#else
#define TNI_MM_LOW_ARM_DOTPROD(X)
#endif

#define TNI_MM_LOW_DECLARE_(dtype, isa) extern const tni_mm_row tni_mm_row_##dtype##_##isa;
TNI_MM_LOW_LIST(TNI_MM_LOW_DECLARE_)
#undef TNI_MM_LOW_DECLARE_

#endif
