/* Kernels of binary operators. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/binary.h"

static tn_status admit_binary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out", "other"};
    (void)row;
    return tni_cpu_admit_reals(query, names, why);
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                     \
    TNI_CPU_ROW(binary, isa, needs, rate, .name = "cpu.binary." #isa, .op = TN_OP_BINARY,         \
                .dtypes = tni_cpu_reals, .numerics = TNI_CPU_INVARIANT, .honours = TNI_CPU_MIXED, \
                .admit = admit_binary)

TNI_CPU_ROWS(ROW, 6e3, 10e3, 12e3)
