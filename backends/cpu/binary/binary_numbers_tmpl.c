/* Sums, differences and products of integers and of complex numbers. */
#include "../shared/loop.h"
#include "../shared/numbers.h"

#include "tenon/module/op/binary.h"

/* The row admits no other dtypes and kinds. */
static numbers_function *find_function(tn_dtype dtype, int32_t kind)
{
    static numbers_function *const functions[][3] = {
        {add_u8_numbers, sub_u8_numbers, mul_u8_numbers},
        {add_u16_numbers, sub_u16_numbers, mul_u16_numbers},
        {add_u32_numbers, sub_u32_numbers, mul_u32_numbers},
        {add_u64_numbers, sub_u64_numbers, mul_u64_numbers},
        {add_c64_numbers, sub_c64_numbers, mul_c64_numbers},
        {add_c128_numbers, sub_c128_numbers, mul_c128_numbers},
    };
    const int32_t column = kind == TN_BINARY_ADD ? 0 : kind == TN_BINARY_SUB ? 1 : 2;
    switch (dtype) {
    case TN_I8:
    case TN_U8: return functions[0][column];
    case TN_I16:
    case TN_U16: return functions[1][column];
    case TN_I32:
    case TN_U32: return functions[2][column];
    case TN_I64:
    case TN_U64: return functions[3][column];
    case TN_C64: return functions[4][column];
    default: return functions[5][column];
    }
}

static void numbers_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    _Alignas(64) char room[3][NUMBER_BYTES];
    const tn_layout *operand = it->op->operand;
    numbers_function *function =
        find_function(operand[TN_ELEMENTWISE_IN].dtype, TN_PARAMS(it->op, elementwise)->kind);
    const strand z = strand_out(it, data[0], it->walk.stride[0]);
    const strand x = strand_in(it, &operand[TN_ELEMENTWISE_IN], data[1], it->walk.stride[1]);
    const strand y = strand_in(it, &operand[TN_ELEMENTWISE_OTHER], data[2], it->walk.stride[2]);
    const int64_t most = numbers_of(z.size);
    (void)first;
    for (int64_t at = 0; at < n; at += most) {
        const int64_t m = n - at < most ? n - at : most;
        const bool direct = z.stride == 1 && !z.stream;
        char *to = direct ? strand_at(&z, at) : room[2];
        function(read_numbers(&x, at, m, room[0]), read_numbers(&y, at, m, room[1]), to, m);
        if (!direct)
            write_numbers(&z, at, m, to);
    }
}

ISA_KERNEL(binary_numbers)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN, TN_ELEMENTWISE_OTHER};
    loop it = {.body = numbers_body};
    (void)err;
    loop_prepare(&it, run, operands, 3, 0, 1);
    loop_run(&it);
    return TN_OK;
}
