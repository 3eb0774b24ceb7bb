/* The module's own attention of f32 and f64: a row for each instruction set. */
#include "../cpu.h"
#include "forward.h"
#include "sets.h"

static const tni_at_set *set_for(const tn_op *op, const tni_at_set *f32, const tni_at_set *f64)
{
    return op->operand[TN_ATTENTION_Q].dtype == TN_F32 ? f32 : f64;
}

/* Masks, sinks and tables are read as they are. */
static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"q", "k", "v", "out", "lse"};
    const tn_op *op = query->op;
    const tn_dtype dtype = op->operand[TN_ATTENTION_Q].dtype;
    (void)row;
    for (int32_t i = TN_ATTENTION_K; i <= TN_ATTENTION_LSE; i++) {
        if (op->operand[i].dtype && op->operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i], dtype, op->operand[i].dtype);
    }
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64, 0};

/* Nothing is left out but what 16-bit floats have alone. */
#define HONOURS                                                                           \
    (TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_ADDITIVE |     \
     TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_SINKS |     \
     TN_ATTENTION_USES_LSE | TN_ATTENTION_USES_DROPOUT | TN_ATTENTION_USES_PACKED |       \
     TN_ATTENTION_USES_LENGTHS | TN_ATTENTION_USES_PAGES | TN_ATTENTION_USES_VALUE_SIZE | \
     TN_ATTENTION_USES_STRIDES | TN_ATTENTION_USES_OFFSET)
#define DIMS                                                                      \
    (TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS | TN_ATTENTION_DIM_QUERIES | \
     TN_ATTENTION_DIM_KEYS)

/*  Instruction set, what it needs, operations/us and bytes/us of one core. */
#define ROW(isa, needs, flops, bytes)                                                             \
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
    const tn_kernel_row tni_cpu_module_attention_##isa = {                                        \
        .struct_size = sizeof(tn_kernel_row),                                                     \
        .name = "cpu.attention." #isa,                                                            \
        .platform = "cpu",                                                                        \
        .backend = "FLASH_ATTN",                                                                  \
        .op = TN_OP_ATTENTION,                                                                    \
        .version = 1,                                                                             \
        .dtypes = dtypes,                                                                         \
        .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT,                                   \
        .honours = HONOURS,                                                                       \
        .free_dims = DIMS,                                                                        \
        .cpu_needs = needs,                                                                       \
        .flops_per_us = flops,                                                                    \
        .bytes_per_us = bytes,                                                                    \
        .overhead_us = 1,                                                                         \
        .admit = admit,                                                                           \
        .workspace = workspace_##isa,                                                             \
        .run = run_##isa,                                                                         \
    };

ROW(plain, 0, 1e4, 8e3)
#if defined(TENON_ISA_AVX2)
ROW(avx2, TENON_ISA_AVX2, 5e4, 1e4)
#endif
#if defined(TENON_ISA_AVX512)
ROW(avx512, TENON_ISA_AVX512, 1e5, 1e4)
#endif
