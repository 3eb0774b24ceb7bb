/* The kernels of attention-sparse-backward: attention-sparse-backward.ISA, for all dtypes. */
#include "attention_sparse_backward_pass.h"

#include "../attention_sparse/attention_sparse_rows.h"

/* Makes the set of the row for the op's dtype. */
static void set_of(const tn_kernel_row *row, const tn_op *op, tni_at_back_set *out)
{
    const tni_sparse_back_row *own = (const tni_sparse_back_row *)row;
    const tn_dtype dtype = op->operand[TN_ATTENTION_SPARSE_Q].dtype;
    if (dtype == TN_F32 || dtype == TN_F64)
        *out = dtype == TN_F32 ? *own->f32 : *own->f64;
    else
        tni_at_back_widen(own->f32, dtype == TN_BF16 ? own->bf16 : own->f16, out);
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_back_set set;
    set_of(row, query->op, &set);
    return tni_sparse_back_workspace(&set, query->op, query->threads);
}

static tn_status run_sparse_back(const tn_run *run, tn_error *err)
{
    tni_at_back_set set;
    set_of(run->row, run->op, &set);
    return tni_sparse_backward(&set, run, err);
}

#define ROW(isa, needs, flops, bytes)                                                         \
    const tni_sparse_back_row tni_sparse_back_row_##isa = {TNI_SPARSE_ROW(                    \
        tni_at_back, isa, needs, flops, bytes, .name = "cpu.attention-sparse-backward." #isa, \
        .op = TN_OP_ATTENTION_SPARSE_BACKWARD, .honours = TNI_SPARSE_HONOURS,                 \
        .workspace = size_workspace, .run = run_sparse_back)};

TNI_CPU_BASE(ROW, 1e4, 8e3)
TNI_CPU_AVX2(ROW, 5e4, 1e4)
TNI_CPU_AVX512(ROW, 1e5, 1e4)
