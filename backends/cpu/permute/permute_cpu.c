/* Kernels of permute: copies of elements, so out must have the dtype of in. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/permute.h"

static const tn_dtype copyable[] = {
    TN_F32,  TN_F64,       TN_BF16,    TN_F16,         TN_I8,          TN_I16, TN_I32,
    TN_I64,  TN_U8,        TN_U16,     TN_U32,         TN_U64,         TN_C64, TN_C128,
    TN_BOOL, TN_F8_E4M3FN, TN_F8_E5M2, TN_F8_E4M3FNUZ, TN_F8_E5M2FNUZ, 0};

static tn_status admit_permute(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    const tn_layout *operand = query->op->operand;
    const tn_dtype in = operand[TN_ELEMENTWISE_IN].dtype, out = operand[TN_ELEMENTWISE_OUT].dtype;
    (void)row;
    return in == out ? TN_OK
                     : tni_cpu_reject_dtype(why, "out", in, out, "out must have in's dtype");
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                \
    TNI_CPU_ROW(permute, isa, needs, rate, .name = "cpu.permute." #isa, .op = TN_OP_PERMUTE, \
                .dtypes = copyable, .numerics = TNI_CPU_EXACT, .honours = TNI_CPU_LAYOUTS,   \
                .admit = admit_permute)

TNI_CPU_ROWS(ROW, 5.4e3, 9e3, 10.8e3)
