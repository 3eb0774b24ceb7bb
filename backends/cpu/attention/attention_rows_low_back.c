/* The module's own attention-backward of bf16 and f16: a kernel row for each instruction set.
 * Operands are widened to f32 when they are packed; gradients are summed in f32 and rounded once,
 * so that they have the same bits for any number of threads, as in f32. */
#include "attention_backward_pass.h"
#include "attention_rows_low.h"
#include "attention_sets.h"

static const tni_at_low_back_row *back_of(const tn_kernel_row *row)
{
    return (const tni_at_low_back_row *)row;
}

static void set_of(const tn_kernel_row *row, tni_at_back_set *out)
{
    const tni_at_half *half = back_of(row)->half;
    *out = *back_of(row)->base;
    out->take = half->take;
    out->turn = half->turn;
    out->lines = half->lines;
    out->begin_row = half->begin_row;
    out->write = half->write;
    out->room_more = out->columns * (int64_t)sizeof(float);
}

/* The conditions of the forward pass, and gradients must have the operands' dtype. */
static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"dout", "dq", "dk", "dv"};
    const tn_layout *operand = query->op->operand;
    const tn_dtype dtype = operand[TN_ATTENTION_Q].dtype, out = operand[TN_ATTENTION_OUT].dtype;
    const tn_status status = tni_at_low_admit(row, query, why);
    if (status)
        return status;
    if (out != dtype)
        return tn_refuse(why, TN_REFUSE_DTYPE, "out", dtype, out);
    for (int32_t i = TN_ATTENTION_DOUT; i <= TN_ATTENTION_DV; i++) {
        if (operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i - TN_ATTENTION_DOUT], dtype,
                             operand[i].dtype);
    }
    return TN_OK;
}

static uint64_t workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_back_set set;
    set_of(row, &set);
    return tni_at_backward_workspace(&set, query->op, query->threads);
}

static tn_status run(const tn_run *run, tn_error *err)
{
    tni_at_back_set set;
    (void)err;
    set_of(run->row, &set);
    tni_at_backward(&set, run);
    return TN_OK;
}

static const tn_dtype dtypes_bf16[] = {TN_BF16, 0};
static const tn_dtype dtypes_f16[] = {TN_F16, 0};

/* Dtype, instruction set, its CPU requirements, operations and bytes per microsecond of a core. */
#define ROW(type, isa, needs, flops, bytes)                             \
    const tni_at_low_back_row tni_at_low_back_##type##_##isa = {        \
        .row = {.struct_size = sizeof(tn_kernel_row),                   \
                .name = "cpu.attention-backward." #type "." #isa,       \
                .platform = "cpu",                                      \
                .backend = "FLASH_ATTN",                                \
                .op = TN_OP_ATTENTION_BACKWARD,                         \
                .version = 1,                                           \
                .dtypes = dtypes_##type,                                \
                .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT, \
                .honours = TNI_AT_HONOURS_BACK,                         \
                .free_dims = TNI_AT_DIMS,                               \
                .cpu_needs = (needs),                                   \
                .flops_per_us = (flops),                                \
                .bytes_per_us = (bytes),                                \
                .overhead_us = 1,                                       \
                .admit = admit,                                         \
                .workspace = workspace,                                 \
                .run = run},                                            \
        .base = &tni_at_back_f32_##isa,                                 \
        .half = &tni_at_half_##type##_##isa,                            \
    };
#define ROWS(isa, needs, flops, bytes)  \
    ROW(bf16, isa, needs, flops, bytes) \
    ROW(f16, isa, needs, flops, bytes)

ROWS(plain, 0, 1e4, 4e3)
#if defined(TENON_ISA_AVX2)
ROWS(avx2, TENON_ISA_AVX2, 5e4, 1e4)
#endif
#if defined(TENON_ISA_AVX512)
ROWS(avx512, TENON_ISA_AVX512, 1e5, 1e4)
#endif
