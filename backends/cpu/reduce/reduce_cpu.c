/* Kernels of reductions. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/reduce.h"

/* Products can exceed the range of f64 where sums do not. */
static tn_status admit_reduce(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out"};
    const int32_t kind = TN_PARAMS(query->op, elementwise)->kind;
    (void)row;
    if (kind != TN_REDUCE_PROD)
        return tni_cpu_admit_reals(query, names, why);
    (void)tn_refuse(why, TN_REFUSE_FEATURE, "kind", TN_REDUCE_SUM, kind);
    if (why)
        tn_text_fit(why->text, sizeof why->text, "products need a kernel with a wider range");
    return TN_UNSUPPORTED;
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                     \
    TNI_CPU_ROW(reduce, isa, needs, rate, .name = "cpu.reduce." #isa, .op = TN_OP_REDUCE,         \
                .dtypes = tni_cpu_reals, .numerics = TN_NUM_RUN_TO_RUN, .honours = TNI_CPU_MIXED, \
                .admit = admit_reduce)

TNI_CPU_ROWS(ROW, 6e3, 10e3, 12e3)
