/* Kernels of rotary position embedding. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/rotary.h"

/* The rest of a row is copied unchanged, so out must have the dtype of in. */
static tn_status admit_rotary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out", "cos", "sin"};
    const tn_layout *operand = query->op->operand;
    const tn_dtype in = operand[TN_ELEMENTWISE_IN].dtype, out = operand[TN_ELEMENTWISE_OUT].dtype;
    (void)row;
    return in == out ? tni_cpu_admit_reals(query, names, why)
                     : tni_cpu_reject_dtype(why, "out", in, out, "out must have in's dtype");
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                             \
    TNI_CPU_ROW(rotary, isa, needs, rate, .name = "cpu.rotary." #isa, .op = TN_OP_ROTARY, \
                .dtypes = tni_cpu_reals, .numerics = TNI_CPU_INVARIANT,                   \
                .honours = TNI_CPU_LAYOUTS | TN_ELEMENTWISE_USES_PARTIAL, .admit = admit_rotary)

TNI_CPU_ROWS(ROW, 4.2e3, 7e3, 8.4e3)
