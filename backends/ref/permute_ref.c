/* permute: elements are copied as bytes. */
#include "ref_copy.h"
#include "ref_elementwise.h"
#include "tenon/module/op/permute.h"

static void permute_piece(void *job, char *const *at, int64_t count)
{
    const tni_ref_each *each = job;
    int64_t bytes = each->out->bytes, from = tni_ref_along(each, TN_ELEMENTWISE_IN);
    int64_t to = tni_ref_along(each, TN_ELEMENTWISE_OUT);
    if (from == bytes && to == bytes)
        memmove(at[TN_ELEMENTWISE_OUT], at[TN_ELEMENTWISE_IN], (size_t)(bytes * count));
    else
        tni_ref_copy(bytes, at[TN_ELEMENTWISE_IN], from, at[TN_ELEMENTWISE_OUT], to, count);
}

static tn_status run_permute(const tn_run *run, tn_error *err)
{
    (void)err;
    return tni_ref_each_run(run, permute_piece);
}

static tn_status admit_permute(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    tn_dtype in = query->op->operand[TN_ELEMENTWISE_IN].dtype;
    tn_dtype out = query->op->operand[TN_ELEMENTWISE_OUT].dtype;
    (void)row;
    if (in != out)
        return tni_ref_refuse(why, TN_REFUSE_DTYPE, "out.dtype", in, out,
                              "permute keeps the dtype: cast changes it");
    return TN_OK;
}

const tn_kernel_row tni_ref_permute = {
    .name = "cpu.permute.ref",
    .op = TN_OP_PERMUTE,
    TNI_REF_ROW,
    .dtypes = tni_ref_all_dtypes,
    .numerics = TNI_REF_EVERYWHERE,
    .honours =
        TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_IN_PLACE,
    .flops_per_us = 500,
    .bytes_per_us = 4000,
    .admit = admit_permute,
    .run = run_permute,
};
