/* Kernels of softmax and log-softmax. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/softmax.h"

static tn_status admit_softmax(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out"};
    (void)row;
    return tni_cpu_admit_reals(query, names, why);
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                \
    TNI_CPU_ROW(softmax, isa, needs, rate, .name = "cpu.softmax." #isa, .op = TN_OP_SOFTMAX, \
                .dtypes = tni_cpu_reals, .numerics = TNI_CPU_INVARIANT,                      \
                .honours = TNI_CPU_MIXED | TN_ELEMENTWISE_USES_LOG, .admit = admit_softmax)

TNI_CPU_ROWS(ROW, 3.6e3, 6e3, 7.2e3)
