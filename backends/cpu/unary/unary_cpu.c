/* Kernels of unary operators. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/unary.h"

static tn_status admit_unary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out"};
    (void)row;
    return tni_cpu_admit_reals(query, names, why);
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                     \
    TNI_CPU_ROW(unary, isa, needs, rate, .name = "cpu.unary." #isa, .op = TN_OP_UNARY,            \
                .dtypes = tni_cpu_reals, .numerics = TNI_CPU_INVARIANT, .honours = TNI_CPU_MIXED, \
                .admit = admit_unary)

TNI_CPU_ROWS(ROW, 4.2e3, 7e3, 8.4e3)
