/* The kernels of attention and of its backward pass. By name:
 *
 *     attention.ISA, attention-backward.ISA              f32 and f64
 *     attention.DTYPE.ISA, attention-backward.DTYPE.ISA  bf16 and f16: widened to f32, or bf16
 *                                                        multiplied directly
 *     attention.math.ISA                                 all dtypes; forms the scores
 *     attention.math16.ISA                               the same, but keeps scores and weights in
 *                                                        the operands' 16 bits, which a setting
 *                                                        must permit */
#include "../shared/isa_rows.h"
#include "attention_backward_pass.h"
#include "attention_cpu_rows.h"
#include "attention_forward_pass.h"
#include "attention_sets.h"
#include "tenon/module/op/attention_backward.h"

static const tn_dtype dtypes_real[] = {TN_F32, TN_F64, 0};
static const tn_dtype dtypes_bf16[] = {TN_BF16, 0};
static const tn_dtype dtypes_f16[] = {TN_F16, 0};
static const tn_dtype dtypes_math[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};
static const tn_dtype dtypes_math16[] = {TN_BF16, TN_F16, 0};

/* Fields of every row: name, op, dtypes, features, CPU requirements; operations and bytes per
 * microsecond of a core. */
#define FIELDS(word, kind, types, uses, needs, flops, bytes)                                      \
    .struct_size = sizeof(tn_kernel_row), .name = "cpu." word, .platform = "cpu", .op = kind,     \
    .version = 1, .dtypes = types, .honours = uses, .free_dims = TNI_AT_DIMS, .cpu_needs = needs, \
    .flops_per_us = (flops), .bytes_per_us = (bytes), .overhead_us = 1
#define NUMERICS (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)

/* f32 and f64 */
static const tni_at_set *set_for(const tn_op *op, const tni_at_set *f32, const tni_at_set *f64)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F32 ? f32 : f64;
}

static const tni_at_back_set *back_set_for(const tn_op *op, const tni_at_back_set *f32,
                                           const tni_at_back_set *f64)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F32 ? f32 : f64;
}

#define FORWARD(isa, needs, flops, bytes)                                                         \
    static tn_status run_##isa(const tn_run *run, tn_error *err)                                  \
    {                                                                                             \
        return tni_at_forward(set_for(run->op, &tni_at_f32_##isa, &tni_at_f64_##isa), run, err);  \
    }                                                                                             \
    static uint64_t workspace_##isa(const tn_kernel_row *row, const tn_query *query)              \
    {                                                                                             \
        (void)row;                                                                                \
        return tni_at_forward_workspace(set_for(query->op, &tni_at_f32_##isa, &tni_at_f64_##isa), \
                                        query->op, query->threads);                               \
    }                                                                                             \
    const tn_kernel_row tni_at_row_##isa = {FIELDS("attention." #isa, TN_OP_ATTENTION,            \
                                                   dtypes_real, TNI_AT_HONOURS, needs, flops,     \
                                                   bytes),                                        \
                                            .backend = "FLASH_ATTN",                              \
                                            .numerics = NUMERICS,                                 \
                                            .admit = tni_at_admit,                                \
                                            .workspace = workspace_##isa,                         \
                                            .run = run_##isa};
#define BACKWARD(isa, needs, flops, bytes)                                                         \
    static tn_status run_back_##isa(const tn_run *run, tn_error *err)                              \
    {                                                                                              \
        (void)err;                                                                                 \
        tni_at_backward(back_set_for(run->op, &tni_at_back_f32_##isa, &tni_at_back_f64_##isa),     \
                        run);                                                                      \
        return TN_OK;                                                                              \
    }                                                                                              \
    static uint64_t workspace_back_##isa(const tn_kernel_row *row, const tn_query *query)          \
    {                                                                                              \
        (void)row;                                                                                 \
        return tni_at_backward_workspace(                                                          \
            back_set_for(query->op, &tni_at_back_f32_##isa, &tni_at_back_f64_##isa), query->op,    \
            query->threads);                                                                       \
    }                                                                                              \
    const tn_kernel_row tni_at_back_row_##isa = {FIELDS("attention-backward." #isa,                \
                                                        TN_OP_ATTENTION_BACKWARD, dtypes_real,     \
                                                        TNI_AT_HONOURS_BACK, needs, flops, bytes), \
                                                 .backend = "FLASH_ATTN",                          \
                                                 .numerics = NUMERICS,                             \
                                                 .admit = tni_at_admit,                            \
                                                 .workspace = workspace_back_##isa,                \
                                                 .run = run_back_##isa};

TNI_CPU_BASE(FORWARD, 1e4, 8e3)
TNI_CPU_AVX2(FORWARD, 5e4, 1e4)
TNI_CPU_AVX512(FORWARD, 1e5, 1e4)
TNI_CPU_BASE(BACKWARD, 1e4, 8e3)
TNI_CPU_AVX2(BACKWARD, 5e4, 1e4)
TNI_CPU_AVX512(BACKWARD, 1e5, 1e4)

/* bf16 and f16: the kernel's own set, or NULL; the set of f32 and the functions that replace some
 * of it */
#define LOW(type, isa, needs, its_set, its_base, its_half, flops, bytes)                   \
    const tni_at_low_row tni_at_low_##type##_##isa = {                                     \
        .row = {FIELDS("attention." #type "." #isa, TN_OP_ATTENTION, dtypes_##type,        \
                       TNI_AT_HONOURS | TN_ATTENTION_USES_OUT_DTYPE, needs, flops, bytes), \
                .backend = "FLASH_ATTN", .numerics = NUMERICS, .admit = tni_at_low_admit,  \
                .workspace = tni_at_low_workspace, .run = tni_at_low_run},                 \
        .own = its_set,                                                                    \
        .base = &(its_base),                                                               \
        .half = &(its_half)};
#define WIDENED(isa, needs, type, flops, bytes) \
    LOW(type, isa, needs, NULL, tni_at_f32_##isa, tni_at_half_##type##_##isa, flops, bytes)
#define DIRECT(type, isa, base, needs, flops, bytes)                                              \
    LOW(type, isa, needs, &tni_at_##type##_##isa, tni_at_f32_##base, tni_at_half_##type##_##base, \
        flops, bytes)

TNI_CPU_BASE(WIDENED, bf16, 1e4, 4e3)
TNI_CPU_AVX2(WIDENED, bf16, 5e4, 1e4)
TNI_CPU_AVX512(WIDENED, bf16, 1e5, 1e4)
TNI_CPU_BASE(WIDENED, f16, 1e4, 4e3)
TNI_CPU_AVX2(WIDENED, f16, 5e4, 1e4)
TNI_CPU_AVX512(WIDENED, f16, 1e5, 1e4)
#if defined(TENON_ISA_AVX512_BF16)
/* Twice as fast as f32 on some processors; slower on others, which have AMX. */
DIRECT(bf16, avx512_bf16, avx512, TENON_ISA_AVX512_BF16, 8e4, 1e4)
#endif
#if defined(TENON_ISA_AMX)
DIRECT(bf16, amx, avx512, TENON_ISA_AMX, 6e5, 1e4)
#endif
#if defined(TENON_ISA_NEON_BF16)
/* Not measured: from counts of instructions. */
DIRECT(bf16, neon_bf16, neon, TENON_ISA_NEON_BF16, 4e4, 4e3)
#endif

/* Backward pass of bf16 and f16 */
#define LOW_BACKWARD(isa, needs, type, flops, bytes)                                           \
    const tni_at_low_back_row tni_at_low_back_##type##_##isa = {                               \
        .row = {FIELDS("attention-backward." #type "." #isa, TN_OP_ATTENTION_BACKWARD,         \
                       dtypes_##type, TNI_AT_HONOURS_BACK, needs, flops, bytes),               \
                .backend = "FLASH_ATTN", .numerics = NUMERICS, .admit = tni_at_low_back_admit, \
                .workspace = tni_at_low_back_workspace, .run = tni_at_low_back_run},           \
        .base = &tni_at_back_f32_##isa,                                                        \
        .half = &tni_at_half_##type##_##isa};

TNI_CPU_BASE(LOW_BACKWARD, bf16, 1e4, 4e3)
TNI_CPU_AVX2(LOW_BACKWARD, bf16, 5e4, 1e4)
TNI_CPU_AVX512(LOW_BACKWARD, bf16, 1e5, 1e4)
TNI_CPU_BASE(LOW_BACKWARD, f16, 1e4, 4e3)
TNI_CPU_AVX2(LOW_BACKWARD, f16, 5e4, 1e4)
TNI_CPU_AVX512(LOW_BACKWARD, f16, 1e5, 1e4)

/* Scores that are formed: the instruction set of everything but the products, and further fields */
#define MATH_HONOURS ((TNI_AT_HONOURS | TN_ATTENTION_USES_OUT_DTYPE) & ~TN_ATTENTION_USES_PAGES)
#define MATH_ROW(word, types, numbers, isa, needs, flops, bytes, its_base, ...)                  \
    const tni_at_math_row tni_at_##word##_##isa = {                                              \
        .row = {FIELDS("attention." #word "." #isa, TN_OP_ATTENTION, types, MATH_HONOURS, needs, \
                       flops, bytes),                                                            \
                .backend = "math", .numerics = numbers, .admit = tni_at_math_admit,              \
                .workspace = tni_at_math_workspace, .run = tni_at_math_run},                     \
        .f32 = &tni_at_f32_##its_base,                                                           \
        .f64 = &tni_at_f64_##its_base,                                                           \
        .mm_f32 = &tni_mm_f32_##its_base,                                                        \
        .mm_f64 = &tni_mm_f64_##its_base,                                                        \
        .half_bf16 = &tni_at_half_bf16_##its_base,                                               \
        .half_f16 = &tni_at_half_f16_##its_base,                                                 \
        .packs_bf16 = &tni_mm_bf16_##its_base,                                                   \
        .packs_f16 = &tni_mm_f16_##its_base,                                                     \
        __VA_ARGS__};
/* Narrow scores must be narrowed and widened again, which costs more than it saves unless the
 * products are faster. */
#define MATH(isa, needs, flops, bytes)                                                            \
    MATH_ROW(math, dtypes_math, NUMERICS, isa, needs, flops, bytes, isa, .narrow = false)         \
    MATH_ROW(math16, dtypes_math16, NUMERICS | TN_NUM_REDUCED_REDUCTION, isa, needs, (flops)*0.9, \
             (bytes)*0.9, isa, .narrow = true)
#define MATH_DIRECT(isa, base, needs, flops, bytes)                                              \
    MATH_ROW(math16, dtypes_bf16, NUMERICS | TN_NUM_REDUCED_REDUCTION, isa, needs, flops, bytes, \
             base, .narrow = true, .own = &tni_mm_bf16_##isa)

TNI_CPU_BASE(MATH, 8e3, 4e3)
TNI_CPU_AVX2(MATH, 4e4, 5e3)
TNI_CPU_AVX512(MATH, 8e4, 5e3)
#if defined(TENON_ISA_AVX512_BF16)
MATH_DIRECT(avx512_bf16, avx512, TENON_ISA_AVX512_BF16, 6e4, 5e3)
#endif
#if defined(TENON_ISA_AMX)
MATH_DIRECT(amx, avx512, TENON_ISA_AMX, 2e5, 5e3)
#endif
#if defined(TENON_ISA_NEON_BF16)
MATH_DIRECT(neon_bf16, neon, TENON_ISA_NEON_BF16, 2e4, 4e3)
#endif
