/* The module's own attention of bf16 and f16: a kernel row for each instruction set.
 *
 * The bf16 instructions of avx512_bf16 and amx flush subnormals to 0; weights have a relative error
 * of up to 2^-18 before they are rounded to bf16. Everything else is computed as f32. */
#include "attention_rows_low.h"
#include "attention_forward_pass.h"
#include "attention_sets.h"

/* The kernel row with the data of its functions. */
static const tni_at_low_row *low_of(const tn_kernel_row *row)
{
    return (const tni_at_low_row *)row;
}

/* The set for few rows, or for all rows: a set of f32 that widens. */
static void widened(const tni_at_low_row *row, tni_at_set *out)
{
    *out = *row->base;
    out->take = row->half->take;
    out->pack = row->half->pack;
    out->few_step =
        row->row.dtypes[0] == TN_BF16 ? row->base->few_step_bf16 : row->base->few_step_f16;
    out->finish = row->half->finish;
    out->in_place = false;
    out->room_more = out->keys * (int64_t)sizeof(float);
}

/* The set of the row, which may point to `thin`. */
static void set_of(const tn_kernel_row *row, tni_at_set *thin, tni_at_set *out)
{
    const tni_at_low_row *low = low_of(row);
    widened(low, thin);
    *out = low->own ? *low->own : *thin;
    if (low->own) {
        out->few = thin->few;
        out->thin = thin;
    }
}

static tn_status refuse(tn_refusal *why, const char *what, int32_t code, int64_t needed,
                        int64_t found, const char *text)
{
    (void)tn_refuse(why, code, what, needed, found);
    if (why)
        tn_text_fit(why->text, sizeof why->text, text);
    return TN_UNSUPPORTED;
}

/* Checks the size of a row of Q and K, or of V. */
static tn_status admit_size(int64_t size, const char *what, tn_refusal *why)
{
    if (size >= 1 && size <= TNI_AT_LOW_SIZE)
        return TN_OK;
    return refuse(why, what, TN_REFUSE_SHAPE, size < 1 ? 1 : TNI_AT_LOW_SIZE, size,
                  "1 to 512 elements are computed with; longer rows are left to other kernels");
}

tn_status tni_at_low_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_op *op = query->op;
    const tn_attention_op *at = &op->as.attention;
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    const tn_dtype out = op->operand[TN_ATTENTION_OUT].dtype;
    const tn_dtype lse = op->operand[TN_ATTENTION_LSE].dtype;
    (void)row;
    if (op->operand[TN_ATTENTION_K].dtype != dtype)
        return tn_refuse(why, TN_REFUSE_DTYPE, "k", dtype, op->operand[TN_ATTENTION_K].dtype);
    if (op->operand[TN_ATTENTION_V].dtype != dtype)
        return tn_refuse(why, TN_REFUSE_DTYPE, "v", dtype, op->operand[TN_ATTENTION_V].dtype);
    if (out != dtype && out != TN_F32)
        return refuse(why, "out", TN_REFUSE_DTYPE, dtype, out, "out is of q's dtype or f32");
    if (lse && lse != TN_F32)
        return refuse(why, "lse", TN_REFUSE_DTYPE, TN_F32, lse, "lse is f32");
    if (admit_size(at->size, "size", why) || admit_size(at->value_size, "value_size", why))
        return TN_UNSUPPORTED;
    return tni_at_admit_numbers(op, why);
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_set thin, set;
    set_of(row, &thin, &set);
    return tni_at_forward_workspace(&set, query->op, query->threads);
}

static tn_status run(const tn_run *run, tn_error *err)
{
    tni_at_set thin, set;
    set_of(run->row, &thin, &set);
    return tni_at_forward(&set, run, err);
}

static const tn_dtype dtypes_bf16[] = {TN_BF16, 0};
static const tn_dtype dtypes_f16[] = {TN_F16, 0};

/* Dtype, instruction set, its CPU requirements, its own set, the set of f32 and the replacements in
 * it; operations and bytes per microsecond of a core. */
#define ROW(type, isa, needs, its_set, its_base, its_half, flops, bytes) \
    const tni_at_low_row tni_at_low_##type##_##isa = {                   \
        .row = {.struct_size = sizeof(tn_kernel_row),                    \
                .name = "cpu.attention." #type "." #isa,                 \
                .platform = "cpu",                                       \
                .backend = "FLASH_ATTN",                                 \
                .op = TN_OP_ATTENTION,                                   \
                .version = 1,                                            \
                .dtypes = dtypes_##type,                                 \
                .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,  \
                .honours = TNI_AT_HONOURS | TN_ATTENTION_USES_OUT_DTYPE, \
                .free_dims = TNI_AT_DIMS,                                \
                .cpu_needs = (needs),                                    \
                .flops_per_us = (flops),                                 \
                .bytes_per_us = (bytes),                                 \
                .overhead_us = 1,                                        \
                .admit = tni_at_low_admit,                               \
                .workspace = workspace,                                  \
                .run = run},                                             \
        .own = its_set,                                                  \
        .base = &(its_base),                                             \
        .half = &(its_half),                                             \
    };
#define WIDENED(type, isa, needs, flops, bytes) \
    ROW(type, isa, needs, NULL, tni_at_f32_##isa, tni_at_half_##type##_##isa, flops, bytes)
#define OWN(type, isa, needs, flops, bytes)                                                       \
    ROW(type, isa, needs, &tni_at_##type##_##isa, tni_at_f32_avx512, tni_at_half_##type##_avx512, \
        flops, bytes)

WIDENED(bf16, plain, 0, 1e4, 4e3)
WIDENED(f16, plain, 0, 1e4, 4e3)
#if defined(TENON_ISA_AVX2)
WIDENED(bf16, avx2, TENON_ISA_AVX2, 5e4, 1e4)
WIDENED(f16, avx2, TENON_ISA_AVX2, 5e4, 1e4)
#endif
#if defined(TENON_ISA_AVX512)
WIDENED(bf16, avx512, TENON_ISA_AVX512, 1e5, 1e4)
WIDENED(f16, avx512, TENON_ISA_AVX512, 1e5, 1e4)
#endif
#if defined(TENON_ISA_AVX512_BF16)
/* Twice as fast as f32 on some processors; slower on others, which have AMX. */
OWN(bf16, avx512_bf16, TENON_ISA_AVX512_BF16, 8e4, 1e4)
#endif
#if defined(TENON_ISA_AMX)
OWN(bf16, amx, TENON_ISA_AMX, 6e5, 1e4)
#endif
