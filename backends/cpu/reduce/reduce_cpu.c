/* Kernels of reductions. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/reduce.h"

static const tn_dtype numbers[] = {TN_F32, TN_F64, TN_BF16, TN_F16, TN_I8,  TN_I16, TN_I32,
                                   TN_I64, TN_U8,  TN_U16,  TN_U32, TN_U64, 0};

/* Products can exceed the range of f64 where sums do not. */
static tn_status admit_reduce(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out"};
    const int32_t kind = TN_PARAMS(query->op, elementwise)->kind;
    (void)row;
    if (kind == TN_REDUCE_PROD)
        return tni_cpu_reject_kind(why, TN_REDUCE_SUM, kind,
                                   "products need a kernel with a wider range");
    if (tni_cpu_is_real(query->op->operand[TN_ELEMENTWISE_IN].dtype))
        return tni_cpu_admit_reals(query, names, why);
    return kind == TN_REDUCE_SUM
               ? tni_cpu_admit_one_dtype(query, names, why)
               : tni_cpu_reject_kind(why, TN_REDUCE_SUM, kind, "integers can be summed only");
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                               \
    TNI_CPU_ROW(reduce, isa, needs, rate, .name = "cpu.reduce." #isa, .op = TN_OP_REDUCE,   \
                .dtypes = numbers, .numerics = TN_NUM_RUN_TO_RUN, .honours = TNI_CPU_MIXED, \
                .admit = admit_reduce)

TNI_CPU_ROWS(ROW, 6e3, 10e3, 12e3)
