/* The kernels of attention-sparse: attention-sparse.ISA, for all dtypes. */
#include "attention_sparse_pass.h"
#include "attention_sparse_rows.h"

#define HONOURS                                                                               \
    (TNI_SPARSE_HONOURS | TN_ATTENTION_SPARSE_USES_LSE | TN_ATTENTION_SPARSE_USES_OUT_DTYPE | \
     TN_ATTENTION_SPARSE_USES_ORDER)

const tn_dtype tni_sparse_dtypes[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

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

tn_status tni_sparse_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_dtype dtype = query->op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    if (dtype == TN_F32 || dtype == TN_F64)
        return tni_at_admit(row, query, why);
    return query->op->kind == TN_OP_ATTENTION_SPARSE ? tni_at_low_admit(row, query, why)
                                                     : tni_at_low_back_admit(row, query, why);
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

#define ROW(isa, needs, flops, bytes)                                                          \
    const tni_sparse_row tni_sparse_row_##isa = {                                              \
        TNI_SPARSE_ROW(tni_at, isa, needs, flops, bytes, .name = "cpu.attention-sparse." #isa, \
                       .op = TN_OP_ATTENTION_SPARSE, .honours = HONOURS,                       \
                       .workspace = size_workspace, .run = run_sparse)};

TNI_CPU_BASE(ROW, 1e4, 8e3)
TNI_CPU_AVX2(ROW, 5e4, 1e4)
TNI_CPU_AVX512(ROW, 1e5, 1e4)
