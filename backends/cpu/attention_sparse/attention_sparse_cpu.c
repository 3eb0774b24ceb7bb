/* The kernels of attention-sparse: attention-sparse.ISA, for all dtypes. */
#include "attention_sparse_pass.h"

#include "../attention/attention_sets.h"
#include "../shared/isa_rows.h"

#define HONOURS                                                               \
    (TN_ATTENTION_SPARSE_USES_WINDOW | TN_ATTENTION_SPARSE_USES_MASK |        \
     TN_ATTENTION_SPARSE_USES_LISTS | TN_ATTENTION_SPARSE_USES_SIZES |        \
     TN_ATTENTION_SPARSE_USES_GROUPS | TN_ATTENTION_SPARSE_USES_LSE |         \
     TN_ATTENTION_SPARSE_USES_VALUE_SIZE | TN_ATTENTION_SPARSE_USES_STRIDES | \
     TN_ATTENTION_SPARSE_USES_OUT_DTYPE | TN_ATTENTION_SPARSE_USES_ORDER)

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

/* Makes the set of the row for the op's dtype. */
static void set_of(const tn_kernel_row *row, const tn_op *op, tni_at_set *out)
{
    const tni_sparse_row *own = (const tni_sparse_row *)row;
    const tn_dtype dtype = op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    if (dtype == TN_F32 || dtype == TN_F64)
        *out = dtype == TN_F32 ? *own->f32 : *own->f64;
    else
        tni_at_widen(own->f32, dtype == TN_BF16 ? own->bf16 : own->f16, dtype, out);
}

static tn_status admit_sparse(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype dtype = query->op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    return dtype == TN_F32 || dtype == TN_F64 ? tni_at_admit(row, query, why)
                                              : tni_at_low_admit(row, query, why);
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_set set;
    set_of(row, query->op, &set);
    return tni_sparse_workspace(&set, query->op, query->threads);
}

static tn_status run_sparse(const tn_run *run, tn_error *err)
{
    tni_at_set set;
    set_of(run->row, run->op, &set);
    return tni_sparse_forward(&set, run, err);
}

/* Operations and bytes per microsecond of a core. */
#define ROW(isa, needs, flops, bytes)                                   \
    const tni_sparse_row tni_sparse_row_##isa = {                       \
        .row = {.struct_size = sizeof(tn_kernel_row),                   \
                .name = "cpu.attention-sparse." #isa,                   \
                .platform = "cpu",                                      \
                .op = TN_OP_ATTENTION_SPARSE,                           \
                .version = 1,                                           \
                .dtypes = dtypes,                                       \
                .numerics = TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT, \
                .honours = HONOURS,                                     \
                .cpu_needs = needs,                                     \
                .flops_per_us = (flops),                                \
                .bytes_per_us = (bytes),                                \
                .overhead_us = 1,                                       \
                .admit = admit_sparse,                                  \
                .workspace = size_workspace,                            \
                .run = run_sparse},                                     \
        .f32 = &tni_at_f32_##isa,                                       \
        .f64 = &tni_at_f64_##isa,                                       \
        .bf16 = &tni_at_half_bf16_##isa,                                \
        .f16 = &tni_at_half_f16_##isa};

TNI_CPU_BASE(ROW, 1e4, 8e3)
TNI_CPU_AVX2(ROW, 5e4, 1e4)
TNI_CPU_AVX512(ROW, 1e5, 1e4)
