/* Kernels of cast. They go through f32, and so support only casts that this does not round
 * twice. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/cast.h"

#include <stdbool.h>

static const tn_dtype castable[] = {TN_F32, TN_F64, TN_BF16, TN_F16, TN_I8, TN_U8, TN_I32, 0};

static bool is_castable(tn_dtype dtype)
{
    const tn_dtype *it = castable;
    while (*it && *it != dtype)
        it++;
    return *it != 0;
}

static tn_status admit_cast(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_layout *operand = query->op->operand;
    const tn_dtype in = operand[TN_ELEMENTWISE_IN].dtype, out = operand[TN_ELEMENTWISE_OUT].dtype;
    (void)row;
    if (!is_castable(out))
        return tni_cpu_reject_dtype(why, "out", TN_F32, out,
                                    "can be cast to: f64, f32, f16, bf16, i32, i8 and u8");
    if ((in == TN_F64 || in == TN_I32) && out != TN_F32)
        return tni_cpu_reject_dtype(why, "out", TN_F32, out, "f64 and i32 can be cast to f32 only");
    return TN_OK;
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                              \
    TNI_CPU_ROW(cast, isa, needs, rate, .name = "cpu.cast." #isa, .op = TN_OP_CAST,        \
                .dtypes = castable, .numerics = TNI_CPU_EXACT, .honours = TNI_CPU_LAYOUTS, \
                .admit = admit_cast)

TNI_CPU_ROWS(ROW, 6e3, 10e3, 12e3)
