/* Kernels of layer and RMS normalization. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/norm.h"

static tn_status admit_norm(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out", "weight", "bias"};
    (void)row;
    return tni_cpu_admit_reals(query, names, why);
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                     \
    TNI_CPU_ROW(norm, isa, needs, rate, .name = "cpu.norm." #isa, .op = TN_OP_NORM,               \
                .dtypes = tni_cpu_reals, .numerics = TNI_CPU_INVARIANT,                           \
                .honours = TNI_CPU_MIXED | TN_ELEMENTWISE_USES_WEIGHT | TN_ELEMENTWISE_USES_BIAS, \
                .admit = admit_norm)

TNI_CPU_ROWS(ROW, 4.8e3, 8e3, 9.6e3)
