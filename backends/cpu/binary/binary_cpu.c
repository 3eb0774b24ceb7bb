/* Kernels of binary operators. */
#include "../shared/row_kernels.h"

#include "tenon/module/op/binary.h"

static tn_status admit_binary(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out", "other"};
    (void)row;
    return tni_cpu_admit_reals(query, names, why);
}

static const tn_dtype numbers[] = {TN_C64, TN_C128, TN_I8,  TN_I16, TN_I32, TN_I64,
                                   TN_U8,  TN_U16,  TN_U32, TN_U64, 0};

static tn_status admit_numbers(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    static const char *const names[] = {"in", "out", "other"};
    const int32_t kind = TN_PARAMS(query->op, elementwise)->kind;
    (void)row;
    if (kind == TN_BINARY_ADD || kind == TN_BINARY_SUB || kind == TN_BINARY_MUL)
        return tni_cpu_admit_one_dtype(query, names, why);
    return tni_cpu_reject_kind(why, TN_BINARY_MUL, kind, "only add, sub and mul");
}

/* Instruction set, its CPU requirements, bytes per microsecond of a core. */
#define ROW(isa, needs, rate)                                                                     \
    TNI_CPU_ROW(binary, isa, needs, rate, .name = "cpu.binary." #isa, .op = TN_OP_BINARY,         \
                .dtypes = tni_cpu_reals, .numerics = TNI_CPU_INVARIANT, .honours = TNI_CPU_MIXED, \
                .admit = admit_binary)

TNI_CPU_ROWS(ROW, 6e3, 10e3, 12e3)

#define NUMBERS_ROW(isa, needs, rate)                                                 \
    TNI_CPU_ROW(binary_numbers, isa, needs, rate, .name = "cpu.binary.numbers." #isa, \
                .op = TN_OP_BINARY, .dtypes = numbers, .numerics = TNI_CPU_INVARIANT, \
                .honours = TNI_CPU_LAYOUTS, .admit = admit_numbers)

TNI_CPU_ROWS(NUMBERS_ROW, 6e3, 10e3, 12e3)
