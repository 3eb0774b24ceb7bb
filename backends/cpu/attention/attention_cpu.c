/* The module's own attention and attention-backward of f32 and f64: a kernel row for each
 * instruction set. */
#include "../cpu_module.h"
#include "attention_backward_pass.h"
#include "attention_forward_pass.h"
#include "attention_sets.h"

#include <inttypes.h>
#include <math.h>

/* Maximum magnitude of the binary exponents of scale and softcap. */
enum { POWER_F32 = 100, POWER_F64 = 900 };

static const tni_at_set *set_for(const tn_op *op, const tni_at_set *f32, const tni_at_set *f64)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F32 ? f32 : f64;
}

static const tni_at_back_set *back_set_for(const tn_op *op, const tni_at_back_set *f32,
                                           const tni_at_back_set *f64)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F32 ? f32 : f64;
}

static tn_status admit_number(double number, const char *what, int64_t most, tn_refusal *why)
{
    const int64_t power = number == 0 ? 0 : ilogb(number);
    if (power >= -most && power <= most)
        return TN_OK;
    (void)tn_refuse(why, TN_REFUSE_FEATURE, what, power < 0 ? -most : most, power);
    if (why)
        (void)snprintf(why->text, sizeof why->text,
                       "its power of two is %" PRId64 ", of %" PRId64 " to %" PRId64
                       ": scores would leave the numbers it computes with",
                       power, -most, most);
    return TN_UNSUPPORTED;
}

tn_status tni_at_admit_numbers(const tn_op *op, tn_refusal *why)
{
    const tn_attention_op *at = &op->as.attention;
    const int64_t most = op->operand[TN_ATTENTION_Q].dtype == TN_F64 ? POWER_F64 : POWER_F32;
    const tn_status status = admit_number(at->scale, "scale", most, why);
    return status ? status : admit_number(at->softcap, "softcap", most, why);
}

tn_status tni_at_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"q",    "k",    "v",  "out", "lse",
                                        "mask", "dout", "dq", "dk",  "dv"};
    const tn_op *op = query->op;
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    const int32_t last = row->op == TN_OP_ATTENTION ? TN_ATTENTION_LSE : TN_ATTENTION_DV;
    for (int32_t i = TN_ATTENTION_K; i <= last; i++) {
        if (i != TN_ATTENTION_MASK && op->operand[i].dtype && op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    return tni_at_admit_numbers(op, why);
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64, 0};

/* Instruction set, its CPU requirements, operations/us and bytes/us of one core. */
#define RUNS(isa)                                                                                 \
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
    static tn_status run_back_##isa(const tn_run *run, tn_error *err)                             \
    {                                                                                             \
        (void)err;                                                                                \
        tni_at_backward(back_set_for(run->op, &tni_at_back_f32_##isa, &tni_at_back_f64_##isa),    \
                        run);                                                                     \
        return TN_OK;                                                                             \
    }                                                                                             \
    static uint64_t workspace_back_##isa(const tn_kernel_row *row, const tn_query *query)         \
    {                                                                                             \
        (void)row;                                                                                \
        return tni_at_backward_workspace(                                                         \
            back_set_for(query->op, &tni_at_back_f32_##isa, &tni_at_back_f64_##isa), query->op,   \
            query->threads);                                                                      \
    }

#define ROW(symbol, word, kind, uses, isa, function, needs, flops, bytes) \
    const tn_kernel_row symbol = {                                        \
        .struct_size = sizeof(tn_kernel_row),                             \
        .name = "cpu." word "." #isa,                                     \
        .platform = "cpu",                                                \
        .backend = "FLASH_ATTN",                                          \
        .op = kind,                                                       \
        .version = 1,                                                     \
        .dtypes = dtypes,                                                 \
        .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,           \
        .honours = uses,                                                  \
        .free_dims = TNI_AT_DIMS,                                         \
        .cpu_needs = needs,                                               \
        .flops_per_us = flops,                                            \
        .bytes_per_us = bytes,                                            \
        .overhead_us = 1,                                                 \
        .admit = tni_at_admit,                                            \
        .workspace = workspace_##function,                                \
        .run = run_##function,                                            \
    };

#define ROWS(isa, needs, flops, bytes)                                                           \
    RUNS(isa)                                                                                    \
    ROW(tni_cpu_module_attention_##isa, "attention", TN_OP_ATTENTION, TNI_AT_HONOURS, isa, isa,  \
        needs, flops, bytes)                                                                     \
    ROW(tni_cpu_module_attention_backward_##isa, "attention-backward", TN_OP_ATTENTION_BACKWARD, \
        TNI_AT_HONOURS_BACK, isa, back_##isa, needs, flops, bytes)

ROWS(plain, 0, 1e4, 8e3)
#if defined(TENON_ISA_AVX2)
ROWS(avx2, TENON_ISA_AVX2, 5e4, 1e4)
#endif
#if defined(TENON_ISA_AVX512)
ROWS(avx512, TENON_ISA_AVX512, 1e5, 1e4)
#endif
