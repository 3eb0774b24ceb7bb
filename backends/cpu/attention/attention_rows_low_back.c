/* Backward pass of attention of bf16 and f16: the functions of its kernel rows.
 * Operands are widened to f32 when they are packed; gradients are summed in f32 and rounded once,
 * so that they have the same bits for any number of threads, as in f32. */
#include "attention_backward_pass.h"
#include "attention_cpu_rows.h"
#include "attention_sets.h"
#include "tenon/module/op/attention_backward.h"

static const tni_at_low_back_row *back_of(const tn_kernel_row *row)
{
    return (const tni_at_low_back_row *)row;
}

void tni_at_back_widen(const tni_at_back_set *base, const tni_at_half *half, tni_at_back_set *out)
{
    *out = *base;
    out->pack_rows = half->pack_rows;
    out->transpose = half->transpose;
    out->lines = half->lines;
    out->begin_row = half->begin_row;
    out->write = half->write;
    out->room_more = out->columns * (int64_t)sizeof(float);
}

static void set_of(const tn_kernel_row *row, tni_at_back_set *out)
{
    tni_at_back_widen(back_of(row)->base, back_of(row)->half, out);
}

/* The conditions of the forward pass, and gradients must have the operands' dtype. */
tn_status tni_at_low_back_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"dout", "dq", "dk", "dv"};
    const tn_layout *operand = query->op->operand;
    const tn_dtype dtype = operand[TN_ATTENTION_Q].dtype, out = operand[TN_ATTENTION_OUT].dtype;
    const tn_status status = tni_at_low_admit(row, query, why);
    if (status)
        return status;
    if (out != dtype)
        return tn_refuse(why, TN_REFUSE_DTYPE, "out", dtype, out);
    for (int32_t i = TN_ATTENTION_BACKWARD_DOUT; i <= TN_ATTENTION_BACKWARD_DV; i++) {
        if (operand[i].dtype != dtype)
            return tn_refuse(why, TN_REFUSE_DTYPE, names[i - TN_ATTENTION_BACKWARD_DOUT], dtype,
                             operand[i].dtype);
    }
    return TN_OK;
}

uint64_t tni_at_low_back_workspace(const tn_kernel_row *row, const tn_query *query)
{
    tni_at_back_set set;
    set_of(row, &set);
    return tni_at_backward_workspace(&set, query->op, query->threads);
}

tn_status tni_at_low_back_run(const tn_run *run, tn_error *err)
{
    tni_at_back_set set;
    (void)err;
    set_of(run->row, &set);
    tni_at_backward(&set, run);
    return TN_OK;
}
