/* Kernels of fill. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/fill.h"

static const tn_dtype fillable[] = {TN_F32, TN_F64,  TN_BF16, TN_F16, TN_I8,  TN_I16,
                                    TN_I32, TN_I64,  TN_U8,   TN_U16, TN_U32, TN_U64,
                                    TN_C64, TN_C128, TN_BOOL, 0};

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                       \
    TNI_CPU_ROW(fill, isa, needs, rate, .name = "cpu.fill." #isa, .op = TN_OP_FILL, \
                .dtypes = fillable, .numerics = TNI_CPU_EXACT, .honours = TNI_CPU_LAYOUTS)

TNI_CPU_ROWS(ROW, 6e3, 10e3, 12e3)
