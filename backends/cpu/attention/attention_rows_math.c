/* Kernel rows of attention that form the scores. Their backend is `math`; those named math16 keep
 * scores and weights in the operands' 16 bits, which a setting must permit. */
#include "attention_math.h"
#include "attention_sets.h"

#include <inttypes.h>
#include <stdio.h>

static const tni_at_math_row *math_of(const tn_kernel_row *row)
{
    return (const tni_at_math_row *)row;
}

/* Maximum workspace bytes of a call. */
static uint64_t limit_of(const tn_query *query)
{
    int64_t limit = -1;
    if (query->setting && query->setting(query, "workspace.limit", &limit))
        limit = -1;
    return limit < 0 ? UINT64_MAX : (uint64_t)limit;
}

static void measure(const tn_kernel_row *row, const tn_query *query, tni_at_math_size *out)
{
    tni_at_math_measure(math_of(row), query->op, query->threads, limit_of(query), out);
}

/* If it admits, `why` says how many rows it forms at once. */
static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype dtype = query->op->operand[TN_ATTENTION_Q].dtype;
    const bool real = dtype == TN_F32 || dtype == TN_F64;
    const tn_status status =
        real ? tni_at_admit(row, query, why) : tni_at_low_admit(row, query, why);
    tni_at_math_size size;
    if (status)
        return status;
    if (query->op->as.attention.size < 1)
        return tn_refuse(why, TN_REFUSE_SHAPE, "head size", 1, query->op->as.attention.size);
    if (!why)
        return TN_OK;
    measure(row, query, &size);
    (void)snprintf(why->text, sizeof why->text,
                   "forms scores of %" PRId64 " row%s at once on each of %" PRId64 " thread%s",
                   size.rows, size.rows == 1 ? "" : "s", size.tasks, size.tasks == 1 ? "" : "s");
    return TN_OK;
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_math_size size;
    measure(row, query, &size);
    return size.bytes;
}

static tn_status run(const tn_run *run, tn_error *err)
{
    return tni_at_math(math_of(run->row), run, err);
}

static const tn_dtype dtypes_math[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};
static const tn_dtype dtypes_math16[] = {TN_BF16, TN_F16, 0};

#define NUMERICS (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)
#define HONOURS  ((TNI_AT_HONOURS | TN_ATTENTION_USES_OUT_DTYPE) & ~TN_ATTENTION_USES_PAGES)

/* Word, dtypes, numerics, instruction set, its CPU requirements; operations and bytes per
 * microsecond of a core; the instruction set of everything but the products, and further fields. */
#define ROW(word, types, numbers, isa, needs, flops, bytes, base, ...) \
    const tni_at_math_row tni_at_##word##_##isa = {                    \
        .row = {.struct_size = sizeof(tn_kernel_row),                  \
                .name = "cpu.attention." #word "." #isa,               \
                .platform = "cpu",                                     \
                .backend = "math",                                     \
                .op = TN_OP_ATTENTION,                                 \
                .version = 1,                                          \
                .dtypes = (types),                                     \
                .numerics = (numbers),                                 \
                .honours = HONOURS,                                    \
                .free_dims = TNI_AT_DIMS,                              \
                .cpu_needs = (needs),                                  \
                .flops_per_us = (flops),                               \
                .bytes_per_us = (bytes),                               \
                .overhead_us = 1,                                      \
                .admit = admit,                                        \
                .workspace = workspace,                                \
                .run = run},                                           \
        .f32 = &tni_at_f32_##base,                                     \
        .f64 = &tni_at_f64_##base,                                     \
        .mm_f32 = &tni_mm_f32_##base,                                  \
        .mm_f64 = &tni_mm_f64_##base,                                  \
        .half_bf16 = &tni_at_half_bf16_##base,                         \
        .half_f16 = &tni_at_half_f16_##base,                           \
        .packs_bf16 = &tni_mm_bf16_##base,                             \
        .packs_f16 = &tni_mm_f16_##base,                               \
        __VA_ARGS__};
/* Narrow scores must be narrowed and widened again, which costs more than it saves unless the
 * products are faster. */
#define ROWS(isa, needs, flops, bytes)                                                       \
    ROW(math, dtypes_math, NUMERICS, isa, needs, flops, bytes, isa, .narrow = false)         \
    ROW(math16, dtypes_math16, NUMERICS | TN_NUM_REDUCED_REDUCTION, isa, needs, (flops)*0.9, \
        (bytes)*0.9, isa, .narrow = true)
#define OWN(isa, needs, flops, bytes)                                                       \
    ROW(math16, dtypes_bf16, NUMERICS | TN_NUM_REDUCED_REDUCTION, isa, needs, flops, bytes, \
        avx512, .narrow = true, .own = &tni_mm_bf16_##isa)

ROWS(plain, 0, 8e3, 4e3)
#if defined(TENON_ISA_AVX2)
ROWS(avx2, TENON_ISA_AVX2, 4e4, 5e3)
#endif
#if defined(TENON_ISA_AVX512)
ROWS(avx512, TENON_ISA_AVX512, 8e4, 5e3)
#endif
#if defined(TENON_ISA_AVX512_BF16) || defined(TENON_ISA_AMX)
static const tn_dtype dtypes_bf16[] = {TN_BF16, 0};
#endif
#if defined(TENON_ISA_AVX512_BF16)
OWN(avx512_bf16, TENON_ISA_AVX512_BF16, 6e4, 5e3)
#endif
#if defined(TENON_ISA_AMX)
OWN(amx, TENON_ISA_AMX, 2e5, 5e3)
#endif
