/* attention as its formula reads: scores of some rows with all keys that they see are formed, become weights, and
 * are multiplied with the values. Both products are by the kernels of matmul. How many rows are formed at once
 * follows from the scratch memory that a run may have; it changes no bit of a result, as sums over keys are made
 * in chunks that begin at multiples of their length, wherever a block of rows begins. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_MATH_H
#define TENON_BACKENDS_CPU_ATTENTION_MATH_H

#include "../matmul/kernels.h"
#include "../matmul/lowp.h"
#include "low.h"

/* A row, and what its functions work with: of f32 and f64, and what stands instead of f32's for 16 bits. */
typedef struct tni_at_math_row {
    tn_kernel_row row; /* first: it is what its functions are given */
    const tni_at_set *f32, *f64;
    const tni_mm_kernels *mm_f32, *mm_f64;
    const tni_at_half *half_bf16, *half_f16;
    const tni_mm_packs *packs_bf16, *packs_f16;
    const tni_mm_set *own; /* of bf16 as it is; NULL: 16 bits are widened             */
    bool narrow; /* scores and weights are kept in the operands' 16 bits; with `own` always */
} tni_at_math_row;

/* Rows that are formed at once, and by how many tasks side by side. */
typedef struct tni_at_math_size {
    int64_t rows, tasks;
    uint64_t bytes; /* of scratch memory; UINT64_MAX: they cannot be counted */
} tni_at_math_size;

/* For so many threads and bytes. One row of one task is the least, whatever the limit is. */
void tni_at_math_measure(const tni_at_math_row *row, const tn_op *op, int32_t threads,
                         uint64_t limit, tni_at_math_size *out);

tn_status tni_at_math(const tni_at_math_row *row, const tn_run *run, tn_error *err);

/*  Every row of this build, the preferred ones first: word, instruction set. */
#define TNI_AT_MATH_LIST(X)    \
    TNI_AT_MATH_AMX(X)         \
    TNI_AT_MATH_AVX512_BF16(X) \
    TNI_AT_MATH_AVX512(X)      \
    TNI_AT_MATH_AVX2(X)        \
    X(math16, plain) X(math, plain)
#if defined(TENON_ISA_AMX)
#define TNI_AT_MATH_AMX(X) X(math16, amx)
#else
#define TNI_AT_MATH_AMX(X)
#endif
#if defined(TENON_ISA_AVX512_BF16)
#define TNI_AT_MATH_AVX512_BF16(X) X(math16, avx512_bf16)
#else
#define TNI_AT_MATH_AVX512_BF16(X)
#endif
#if defined(TENON_ISA_AVX512)
#define TNI_AT_MATH_AVX512(X) X(math16, avx512) X(math, avx512)
#else
#define TNI_AT_MATH_AVX512(X)
#endif
#if defined(TENON_ISA_AVX2)
#define TNI_AT_MATH_AVX2(X) X(math16, avx2) X(math, avx2)
#else
#define TNI_AT_MATH_AVX2(X)
#endif

#define TNI_AT_MATH_DECLARE_(word, isa) extern const tni_at_math_row tni_at_##word##_##isa;
TNI_AT_MATH_LIST(TNI_AT_MATH_DECLARE_)
#undef TNI_AT_MATH_DECLARE_

#endif
