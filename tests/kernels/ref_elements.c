/* permute, cast, fill, unary and binary of the reference kernels, in every layout, against long double. */
#include "make.h"

#include "tenon/module/op/binary.h"
#include "tenon/module/op/cast.h"
#include "tenon/module/op/fill.h"
#include "tenon/module/op/permute.h"
#include "tenon/module/op/unary.h"

static const tn_dtype all[] = {
#define NAME(name, word, code, bits) name,
    TN_DTYPE_LIST(NAME)
#undef NAME
};
enum { ALL = sizeof all / sizeof all[0], WHOLE = 8 };

static const tn_dtype floats[] = {TN_F64, TN_F32, TN_F16, TN_BF16};
enum { FLOATS = sizeof floats / sizeof floats[0] };

static const struct {
    int32_t rank;
    int64_t shape[8];
} shapes[] = {{0, {0}},
              {1, {1}},
              {1, {1031}},
              {2, {7, 13}},
              {3, {3, 1, 5}},
              {4, {2, 3, 4, 5}},
              {8, {2, 1, 2, 3, 1, 2, 2, 3}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int not_repeated(int kind)
{
    return kind == REPEATED ? DENSE : kind;
}

static void permute_moves_bytes(void **state)
{
    (void)state;
    for (int d = 0; d < ALL; d++) {
        for (int s = 0; s < SHAPES; s++) {
            for (int kinds = 0; kinds < LAYOUTS * LAYOUTS; kinds++) {
                operand in = make_random(all[d], shapes[s].rank, shapes[s].shape, kinds % LAYOUTS);
                operand out = make_poisoned(all[d], shapes[s].rank, shapes[s].shape,
                                            not_repeated(kinds / LAYOUTS));
                tn_op op = each_op(TN_OP_PERMUTE, 0, &out.layout, 0);
                op.uses = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST;
                compute(&op, (const operand *const[]){&in, &out}, 1 + kinds % 3);
                for (int64_t i = 0; i < elements_of(&out.layout); i++)
                    assert_memory_equal(element_at(&out, i), element_at(&in, i),
                                        (size_t)bytes_of(all[d]));
                assert_outside_untouched(&out);
                drop(&in), drop(&out);
            }
        }
    }
}

static void a_large_permute_is_shared(void **state)
{
    const int64_t shape[] = {37, 53, 41};
    operand in = make_random(TN_I16, 3, shape, TURNED),
            out = make_poisoned(TN_I16, 3, shape, DENSE);
    tn_op op = each_op(TN_OP_PERMUTE, 0, &out.layout, 0);
    (void)state;
    host_tasks = 0;
    compute(&op, (const operand *const[]){&in, &out}, 4);
    assert_true(host_tasks > 1);
    for (int64_t i = 0; i < elements_of(&out.layout); i++)
        assert_memory_equal(element_at(&out, i), element_at(&in, i), 2);
    assert_outside_untouched(&out);
    drop(&in), drop(&out);
}

static void fill_writes_one_value(void **state)
{
    (void)state;
    for (int d = 0; d < ALL; d++) {
        for (int kind = 0; kind < REPEATED; kind++) {
            const int64_t shape[] = {3, 701};
            operand out = make(all[d], 2, shape, kind);
            tn_op op = each_op(TN_OP_FILL, 0, &out.layout, 0);
            TN_PARAMS_MUTABLE(&op, elementwise)->value = 3,
                                   TN_PARAMS_MUTABLE(&op, elementwise)->imaginary = -2;
            compute(&op, (const operand *const[]){NULL, &out}, 2);
            for (int64_t i = 0; i < elements_of(&out.layout); i++) {
                assert_true(value_at(&out, i, 0) == (all[d] == TN_BOOL ? 1 : 3));
                assert_true(parts_of(all[d]) == 1 || value_at(&out, i, 1) == -2);
            }
            assert_outside_untouched(&out);
            drop(&out);
        }
    }
}

static long double function(int32_t kind, long double x)
{
    const long double u = sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);
    switch (kind) {
    case TN_UNARY_NEG: return -x;
    case TN_UNARY_ABS: return x < 0 ? -x : x;
    case TN_UNARY_SQRT: return sqrtl(x);
    case TN_UNARY_RSQRT: return 1 / sqrtl(x);
    case TN_UNARY_EXP: return expl(x);
    case TN_UNARY_LOG: return logl(x);
    case TN_UNARY_TANH: return tanhl(x);
    case TN_UNARY_SIGMOID: return 1 / (1 + expl(-x));
    case TN_UNARY_RELU: return x < 0 ? 0 : x;
    case TN_UNARY_GELU: return x / 2 * (1 + erfl(x / sqrtl(2)));
    case TN_UNARY_GELU_TANH: return x / 2 * (1 + tanhl(u));
    default: return x / (1 + expl(-x));
    }
}

static void unary_of_floats(void **state)
{
    (void)state;
    for (int32_t kind = 0; kind < TN_UNARY_COUNT; kind++) {
        for (int d = 0; d < FLOATS; d++) {
            for (int s = 0; s < SHAPES; s++) {
                const tn_dtype to = s % 3 == 0 ? floats[(d + s) % FLOATS] : floats[d];
                operand in = make_random(floats[d], shapes[s].rank, shapes[s].shape, s % LAYOUTS);
                operand out = make_poisoned(to, shapes[s].rank, shapes[s].shape,
                                            not_repeated((s + 1) % LAYOUTS));
                tn_op op = each_op(TN_OP_UNARY, kind, &out.layout, 0);
                op.uses = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_OUT_DTYPE;
                compute(&op, (const operand *const[]){&in, &out}, 1);
                for (int64_t i = 0; i < elements_of(&out.layout); i++) {
                    long double x = value_at(&in, i, 0), want = function(kind, x);
                    assert_near(to, value_at(&out, i, 0), want,
                                ldexpl(fabsl(x) + fabsl(want), floats[d] == TN_F64 ? -60 : -50));
                }
                assert_outside_untouched(&out);
                drop(&in), drop(&out);
            }
        }
    }
}

/* Where the formulas' halves cancel, the results are still right. */
static void unary_far_out(void **state)
{
    const double x[] = {-10, -30, 40, -0.0, (double)INFINITY, (double)NAN, -1, 0};
    const int64_t shape[] = {8};
    double y[8];
    operand in = make(TN_F64, 1, shape, DENSE), out = make_poisoned(TN_F64, 1, shape, DENSE);
    (void)state;
    memcpy(in.first, x, sizeof x);
    tn_op op = each_op(TN_OP_UNARY, TN_UNARY_GELU, &out.layout, 0);
    compute(&op, (const operand *const[]){&in, &out}, 1);
    memcpy(y, out.first, sizeof y);
    assert_near(TN_F64, y[0], -5 * erfcl(10 / sqrtl(2)), 0);
    assert_true(y[1] < 0 && y[2] == 40 && y[3] == 0 && is_inf(y[4]) && is_nan(y[5]));
    TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_UNARY_SQRT;
    compute(&op, (const operand *const[]){&in, &out}, 1);
    memcpy(y, out.first, sizeof y);
    assert_true(is_nan(y[0]) && y[3] == 0 && is_negative(y[3]) && is_inf(y[4]) && is_nan(y[6]));
    TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_UNARY_RELU;
    compute(&op, (const operand *const[]){&in, &out}, 1);
    memcpy(y, out.first, sizeof y);
    assert_true(y[0] == 0 && y[2] == 40 && is_nan(y[5]) && is_inf(y[4]));
    TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_UNARY_LOG;
    compute(&op, (const operand *const[]){&in, &out}, 1);
    memcpy(y, out.first, sizeof y);
    assert_true(is_nan(y[0]) && is_inf(y[7]) && y[7] < 0);
    drop(&in), drop(&out);
}

/* What is kept of a whole number in so many bits. */
static long double wrapped(tn_dtype dtype, uint64_t bits)
{
    char bytes[8];
    store_bits(bytes, 8, bits);
    return load(dtype, bytes, 0);
}

static uint64_t bits_at(const operand *o, int64_t i)
{
    long double value = value_at(o, i, 0);
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static void unary_of_whole_and_complex_numbers(void **state)
{
    const int64_t shape[] = {5, 60};
    (void)state;
    for (int d = 0; d < WHOLE; d++) {
        for (int k = 0; k < 3; k++) {
            const int32_t kind = k == 0 ? TN_UNARY_NEG : k == 1 ? TN_UNARY_ABS : TN_UNARY_RELU;
            operand in = make_random(all[d], 2, shape, SPREAD);
            operand out = make_poisoned(all[d], 2, shape, OFF_BY_ONE);
            tn_op op = each_op(TN_OP_UNARY, kind, &out.layout, 0);
            memset(in.first, 0, (size_t)bytes_of(all[d]));
            in.first[bytes_of(all[d]) - 1] = (char)0x80; /* the least, where there is a sign */
            compute(&op, (const operand *const[]){&in, &out}, 1);
            for (int64_t i = 0; i < elements_of(&out.layout); i++) {
                const uint64_t x = bits_at(&in, i);
                const int negative = value_at(&in, i, 0) < 0;
                const uint64_t want = kind == TN_UNARY_RELU              ? (negative ? 0 : x)
                                      : kind == TN_UNARY_NEG || negative ? 0 - x
                                                                         : x;
                assert_true(value_at(&out, i, 0) == wrapped(all[d], want));
            }
            drop(&in), drop(&out);
        }
    }
    for (int wide = 0; wide < 2; wide++) {
        const tn_dtype from = wide ? TN_C128 : TN_C64, to = wide ? TN_F64 : TN_F32;
        operand in = make_random(from, 2, shape, REVERSED),
                abs = make_poisoned(to, 2, shape, TURNED);
        operand neg = make_poisoned(from, 2, shape, DENSE);
        tn_op op = each_op(TN_OP_UNARY, TN_UNARY_ABS, &abs.layout, 0);
        compute(&op, (const operand *const[]){&in, &abs}, 1);
        TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_UNARY_NEG;
        compute(&op, (const operand *const[]){&in, &neg}, 1);
        for (int64_t i = 0; i < elements_of(&abs.layout); i++) {
            long double x = value_at(&in, i, 0), y = value_at(&in, i, 1);
            assert_near(to, value_at(&abs, i, 0), hypotl(x, y), wide ? 1e-18L : 1e-15L);
            assert_true(value_at(&neg, i, 0) == -x && value_at(&neg, i, 1) == -y);
        }
        drop(&in), drop(&abs), drop(&neg);
    }
}

static long double combined(int32_t kind, long double a, long double b)
{
    switch (kind) {
    case TN_BINARY_ADD: return a + b;
    case TN_BINARY_SUB: return a - b;
    case TN_BINARY_MUL: return a * b;
    case TN_BINARY_DIV: return a / b;
    case TN_BINARY_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

static void binary_of_floats(void **state)
{
    (void)state;
    for (int32_t kind = 0; kind < TN_BINARY_COUNT; kind++) {
        for (int d = 0; d < FLOATS; d++) {
            for (int s = 0; s < SHAPES; s++) {
                operand in = make_random(floats[d], shapes[s].rank, shapes[s].shape, s % LAYOUTS);
                operand other =
                    make_random(floats[d], shapes[s].rank, shapes[s].shape, (s + 5) % LAYOUTS);
                operand out = make_poisoned(floats[d], shapes[s].rank, shapes[s].shape,
                                            not_repeated((s + 1) % LAYOUTS));
                tn_op op = each_op(TN_OP_BINARY, kind, &out.layout, 0);
                op.count = 3;
                compute(&op, (const operand *const[]){&in, &out, &other}, 1);
                for (int64_t i = 0; i < elements_of(&out.layout); i++)
                    assert_near(floats[d], value_at(&out, i, 0),
                                combined(kind, value_at(&in, i, 0), value_at(&other, i, 0)), 0);
                assert_outside_untouched(&out);
                drop(&in), drop(&out), drop(&other);
            }
        }
    }
}

static void max_and_min_of_nans_and_zeros(void **state)
{
    const double a[] = {(double)NAN, 1, -0.0, 0, (double)INFINITY, -3};
    const double b[] = {1, (double)NAN, 0, -0.0, 5, -(double)INFINITY};
    const int64_t shape[] = {6};
    operand x = make(TN_F64, 1, shape, DENSE), y = make(TN_F64, 1, shape, DENSE);
    operand out = make_poisoned(TN_F64, 1, shape, DENSE);
    double got[6];
    (void)state;
    memcpy(x.first, a, sizeof a), memcpy(y.first, b, sizeof b);
    tn_op op = each_op(TN_OP_BINARY, TN_BINARY_MAX, &out.layout, 0);
    op.count = 3;
    compute(&op, (const operand *const[]){&x, &out, &y}, 1);
    memcpy(got, out.first, sizeof got);
    assert_true(is_nan(got[0]) && is_nan(got[1]) && !is_negative(got[2]) && !is_negative(got[3]));
    assert_true(is_inf(got[4]) && got[5] == -3);
    TN_PARAMS_MUTABLE(&op, elementwise)->kind = TN_BINARY_MIN;
    compute(&op, (const operand *const[]){&x, &out, &y}, 1);
    memcpy(got, out.first, sizeof got);
    assert_true(is_nan(got[0]) && is_nan(got[1]) && is_negative(got[2]) && is_negative(got[3]));
    assert_true(got[4] == 5 && is_inf(got[5]));
    drop(&x), drop(&y), drop(&out);
}

static uint64_t combined_whole(int32_t kind, const operand *in, const operand *other, int64_t i)
{
    const uint64_t a = bits_at(in, i), b = bits_at(other, i);
    const long double x = value_at(in, i, 0), y = value_at(other, i, 0);
    switch (kind) {
    case TN_BINARY_ADD: return a + b;
    case TN_BINARY_SUB: return a - b;
    case TN_BINARY_MUL: return a * b;
    case TN_BINARY_DIV: {
        long double q = y == 0 ? 0 : truncl(x / y);
        return q < 0 ? (uint64_t)(int64_t)q : (uint64_t)q;
    }
    case TN_BINARY_MAX: return x > y ? a : b;
    default: return x < y ? a : b;
    }
}

static void binary_of_whole_numbers(void **state)
{
    const int64_t shape[] = {3, 50};
    (void)state;
    for (int32_t kind = 0; kind < TN_BINARY_COUNT; kind++) {
        for (int d = 0; d < WHOLE; d++) {
            operand in = make_random(all[d], 2, shape, TURNED);
            operand other = make_random(all[d], 2, shape, OFF_BY_ONE);
            operand out = make_poisoned(all[d], 2, shape, SPREAD);
            tn_op op = each_op(TN_OP_BINARY, kind, &out.layout, 0);
            op.count = 3;
            memset(element_at(&other, 0), 0, (size_t)bytes_of(all[d])); /* by zero */
            memset(element_at(&other, 1), 0xFF,
                   (size_t)bytes_of(all[d])); /* by -1: the least wraps */
            memset(element_at(&in, 1), 0, (size_t)bytes_of(all[d]));
            element_at(&in, 1)[bytes_of(all[d]) - 1] = (char)0x80;
            compute(&op, (const operand *const[]){&in, &out, &other}, 1);
            for (int64_t i = 0; i < elements_of(&out.layout); i++)
                assert_true(value_at(&out, i, 0) ==
                            wrapped(all[d], combined_whole(kind, &in, &other, i)));
            assert_outside_untouched(&out);
            drop(&in), drop(&out), drop(&other);
        }
    }
}

static void binary_of_complex_numbers(void **state)
{
    const int64_t shape[] = {77};
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        const tn_dtype dtype = wide ? TN_C128 : TN_C64;
        for (int32_t kind = TN_BINARY_ADD; kind <= TN_BINARY_DIV; kind++) {
            operand in = make_random(dtype, 1, shape, OFF_BY_ONE);
            operand other = make_random(dtype, 1, shape, REVERSED);
            operand out = make_poisoned(dtype, 1, shape, SPREAD);
            tn_op op = each_op(TN_OP_BINARY, kind, &out.layout, 0);
            op.count = 3;
            compute(&op, (const operand *const[]){&in, &out, &other}, 1);
            for (int64_t i = 0; i < 77; i++) {
                long double a = value_at(&in, i, 0), b = value_at(&in, i, 1);
                long double c = value_at(&other, i, 0), d = value_at(&other, i, 1);
                long double re = kind == TN_BINARY_ADD   ? a + c
                                 : kind == TN_BINARY_SUB ? a - c
                                 : kind == TN_BINARY_MUL ? a * c - b * d
                                                         : (a * c + b * d) / (c * c + d * d);
                long double im = kind == TN_BINARY_ADD   ? b + d
                                 : kind == TN_BINARY_SUB ? b - d
                                 : kind == TN_BINARY_MUL ? a * d + b * c
                                                         : (b * c - a * d) / (c * c + d * d);
                long double slack = kind == TN_BINARY_DIV ? ulp(dtype, re) + ulp(dtype, im) : 0;
                assert_near(dtype, value_at(&out, i, 0), re, slack + 1e-18L);
                assert_near(dtype, value_at(&out, i, 1), im, slack + 1e-18L);
            }
            drop(&in), drop(&out), drop(&other);
        }
    }
}

/* Squares of the divisor overflow and vanish. */
static void complex_division_far_out(void **state)
{
    const double a[] = {1e300, 1e300, 0x1p-1060, 0}, b[] = {1e300, 1e300, 0x1p-1060, 0x1p-1060};
    const int64_t shape[] = {2};
    operand x = make(TN_C128, 1, shape, DENSE), y = make(TN_C128, 1, shape, DENSE);
    operand out = make_poisoned(TN_C128, 1, shape, DENSE);
    (void)state;
    memcpy(x.first, a, sizeof a), memcpy(y.first, b, sizeof b);
    tn_op op = each_op(TN_OP_BINARY, TN_BINARY_DIV, &out.layout, 0);
    op.count = 3;
    compute(&op, (const operand *const[]){&x, &out, &y}, 1);
    assert_true(value_at(&out, 0, 0) == 1 && value_at(&out, 0, 1) == 0);
    assert_true(value_at(&out, 1, 0) == 0.5L && value_at(&out, 1, 1) == -0.5L);
    drop(&x), drop(&y), drop(&out);
}

/* Out is in, for what may be so. */
static void in_place(void **state)
{
    const int64_t shape[] = {3, 700};
    (void)state;
    for (int kind = 0; kind < REPEATED; kind++) {
        operand x = make_random(TN_F32, 2, shape, kind), y = make_random(TN_F32, 2, shape, DENSE);
        operand out = make_poisoned(TN_F32, 2, shape, DENSE);
        static const int32_t ops[] = {TN_OP_UNARY, TN_OP_CAST, TN_OP_PERMUTE, TN_OP_BINARY};
        for (int i = 0; i < 4; i++) {
            tn_op op = each_op(ops[i], TN_UNARY_NEG, &out.layout, 0);
            op.uses = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_IN_PLACE;
            op.count = ops[i] == TN_OP_BINARY ? 3 : 2;
            TN_PARAMS_MUTABLE(&op, elementwise)->kind =
                ops[i] == TN_OP_BINARY ? TN_BINARY_SUB : TN_UNARY_NEG;
            compute(&op, (const operand *const[]){&x, &out, &y}, 1);
            compute(&op, (const operand *const[]){&x, &x, &y}, 1);
            for (int64_t e = 0; e < elements_of(&x.layout); e++)
                assert_true(value_at(&x, e, 0) == value_at(&out, e, 0));
        }
        assert_outside_untouched(&x);
        drop(&x), drop(&y), drop(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permute_moves_bytes),
        cmocka_unit_test(a_large_permute_is_shared),
        cmocka_unit_test(fill_writes_one_value),
        cmocka_unit_test(unary_of_floats),
        cmocka_unit_test(unary_far_out),
        cmocka_unit_test(unary_of_whole_and_complex_numbers),
        cmocka_unit_test(binary_of_floats),
        cmocka_unit_test(max_and_min_of_nans_and_zeros),
        cmocka_unit_test(binary_of_whole_numbers),
        cmocka_unit_test(binary_of_complex_numbers),
        cmocka_unit_test(complex_division_far_out),
        cmocka_unit_test(in_place),
    };
    return run_suite("kernels.ref_elements", tests);
}
