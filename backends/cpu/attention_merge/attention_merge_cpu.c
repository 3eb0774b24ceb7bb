/* Kernels that merge the results of attention over two parts of the keys. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/attention_merge.h"

static tn_status admit_attention_merge(const tn_kernel_row *row, const tn_query *query,
                                       tn_refusal *why)
{
    static const char *const names[] = {"in", "lse_in", "other", "lse_other", "out", "lse"};
    (void)row;
    return tni_cpu_admit_reals(query, names, why);
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                           \
    TNI_CPU_ROW(attention_merge, isa, needs, rate, .name = "cpu.attention-merge." #isa, \
                .op = TN_OP_ATTENTION_MERGE, .dtypes = tni_cpu_reals,                   \
                .numerics = TNI_CPU_INVARIANT,                                          \
                .honours = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_OUT_DTYPE, \
                .admit = admit_attention_merge)

TNI_CPU_ROWS(ROW, 4.2e3, 7e3, 8.4e3)
