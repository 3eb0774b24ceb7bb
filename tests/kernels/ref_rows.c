/* reduce, softmax, norm and rotary of the reference kernels against loops in long double. */
#include "make.h"

#include "tenon/module/op/norm.h"
#include "tenon/module/op/reduce.h"
#include "tenon/module/op/rotary.h"
#include "tenon/module/op/softmax.h"

static const tn_dtype all[] = {
#define NAME(name, word, code, bits) name,
    TN_DTYPE_LIST(NAME)
#undef NAME
};
enum { WHOLE = 8 };

static const tn_dtype floats[] = {TN_F64, TN_F32, TN_F16, TN_BF16};
enum { FLOATS = sizeof floats / sizeof floats[0] };

static int not_repeated(int kind)
{
    return kind == REPEATED ? DENSE : kind;
}

static long double slack_of(tn_dtype dtype, long double size)
{
    return ldexpl(size, dtype == TN_F64 || dtype == TN_C128 ? -58 : -48);
}

/* Out of a reduce: in's shape with 1 in the last dimensions. */
static operand make_reduced(tn_dtype dtype, const tn_layout *in, int32_t axes)
{
    int64_t shape[TN_OP_RANK_MAX];
    for (int32_t d = 0; d < in->rank; d++)
        shape[d] = d < in->rank - axes ? in->shape[d] : 1;
    operand out = make_poisoned(dtype, in->rank, shape, SPREAD);
    for (int32_t d = in->rank - axes; d < in->rank; d++)
        out.layout.stride[d] = 0;
    return out;
}

static void reduce(int32_t kind, int32_t axes, const operand *in, const operand *out)
{
    tn_op op = each_op(TN_OP_REDUCE, kind, &in->layout, axes);
    TN_PARAMS_MUTABLE(&op, elementwise)->axes = axes;
    TN_PARAMS_MUTABLE(&op, elementwise)->elements = TN_PARAMS(&op, elementwise)->rows;
    op.uses = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_OUT_DTYPE;
    compute(&op, (const operand *const[]){in, out}, 3);
}

static long double reduced(int32_t kind, const operand *in, int64_t row, int64_t size,
                           long double *out_size)
{
    long double value = kind == TN_REDUCE_PROD ? 1 : 0, total = 0;
    for (int64_t i = 0; i < size; i++) {
        long double x = value_at(in, row * size + i, 0);
        total += fabsl(x);
        if (kind == TN_REDUCE_PROD)
            value *= x;
        else if (kind == TN_REDUCE_MAX)
            value = i == 0 || x > value ? x : value;
        else if (kind == TN_REDUCE_MIN)
            value = i == 0 || x < value ? x : value;
        else
            value += x;
    }
    *out_size = kind == TN_REDUCE_PROD ? fabsl(value) * (long double)size : total + 1;
    return kind == TN_REDUCE_MEAN ? value / (long double)size : value;
}

static void reduce_of_floats(void **state)
{
    const int64_t shapes[][3] = {{3, 5, 11}, {1, 1, 1}, {2, 1, 30}, {7, 2, 2}, {1, 40, 51}};
    (void)state;
    for (int32_t kind = 0; kind < TN_REDUCE_COUNT; kind++) {
        for (int turn = 0; turn < 5 * FLOATS * LAYOUTS; turn++) {
            const int64_t *shape = shapes[dice(5)];
            const tn_dtype from = floats[dice(FLOATS)];
            const tn_dtype to = dice(7) == 0 && from != TN_F64 ? TN_F32 : from;
            const int32_t axes = (int32_t)dice(4);
            operand in = make_random(from, 3, shape, (int)dice(LAYOUTS));
            operand out = make_reduced(to, &in.layout, axes);
            const int64_t rows = elements_of(&out.layout), size = elements_of(&in.layout) / rows;
            if (kind == TN_REDUCE_PROD && size > 60) {
                drop(&in), drop(&out);
                continue;
            }
            reduce(kind, axes, &in, &out);
            for (int64_t r = 0; r < rows; r++) {
                long double total, want = reduced(kind, &in, r, size, &total);
                assert_near(to, value_at(&out, r, 0), want, slack_of(from, total));
            }
            assert_outside_untouched(&out);
            drop(&in), drop(&out);
        }
    }
}

static uint64_t bits_of(long double value)
{
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static void reduce_of_whole_numbers(void **state)
{
    const int64_t shape[] = {4, 9, 7};
    (void)state;
    for (int d = 0; d < WHOLE; d++) {
        for (int wide = 0; wide < 2; wide++) {
            const int is_signed = (all[d] & 0xFF) == TN_DTYPE_CODE_INT;
            const tn_dtype to = wide ? (is_signed ? TN_I64 : TN_U64) : all[d];
            operand in = make_random(all[d], 3, shape, d % LAYOUTS);
            for (int32_t kind = 0; kind < TN_REDUCE_COUNT; kind++) {
                operand out = make_reduced(kind == TN_REDUCE_MEAN ? TN_F64 : to, &in.layout, 2);
                reduce(kind, 2, &in, &out);
                for (int64_t r = 0; r < 4; r++) {
                    long double size, want = reduced(kind, &in, r, 63, &size);
                    uint64_t sum = 0, product = 1;
                    char bytes[8];
                    for (int64_t i = 0; i < 63; i++) {
                        sum += bits_of(value_at(&in, r * 63 + i, 0));
                        product *= bits_of(value_at(&in, r * 63 + i, 0));
                    }
                    store_bits(bytes, 8, kind == TN_REDUCE_SUM ? sum : product);
                    if (kind == TN_REDUCE_SUM || kind == TN_REDUCE_PROD)
                        want = load(to, bytes, 0);
                    if (kind == TN_REDUCE_MEAN)
                        assert_near(TN_F64, value_at(&out, r, 0), want, ldexpl(size, -60));
                    else
                        assert_true(value_at(&out, r, 0) == want);
                }
                drop(&out);
            }
            drop(&in);
        }
    }
}

static void max_below_and_min_above_0(void **state)
{
    const int64_t shape[] = {3};
    operand in = make(TN_I8, 1, shape, DENSE), out = make_reduced(TN_I8, &in.layout, 1);
    (void)state;
    memcpy(in.first, "\xFB\xFD\xF7", 3); /* -5, -3, -9 */
    reduce(TN_REDUCE_MAX, 1, &in, &out);
    assert_true(value_at(&out, 0, 0) == -3);
    memcpy(in.first, "\5\3\x9", 3);
    reduce(TN_REDUCE_MIN, 1, &in, &out);
    assert_true(value_at(&out, 0, 0) == 3);
    drop(&in), drop(&out);
}

static void reduce_of_complex_numbers(void **state)
{
    const int64_t shape[] = {3, 10};
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        const tn_dtype dtype = wide ? TN_C128 : TN_C64;
        operand in = make_random(dtype, 2, shape, REVERSED);
        operand sum = make_reduced(dtype, &in.layout, 1), mean = make_reduced(dtype, &in.layout, 1);
        operand prod = make_reduced(dtype, &in.layout, 1);
        reduce(TN_REDUCE_SUM, 1, &in, &sum);
        reduce(TN_REDUCE_MEAN, 1, &in, &mean);
        reduce(TN_REDUCE_PROD, 1, &in, &prod);
        for (int64_t r = 0; r < 3; r++) {
            long double total[2] = {0, 0}, product[2] = {1, 0}, size = 1;
            for (int64_t i = 0; i < 10; i++) {
                long double x = value_at(&in, r * 10 + i, 0), y = value_at(&in, r * 10 + i, 1);
                long double re = product[0] * x - product[1] * y;
                product[1] = product[0] * y + product[1] * x;
                product[0] = re;
                total[0] += x, total[1] += y;
                size *= hypotl(x, y);
            }
            for (int part = 0; part < 2; part++) {
                assert_near(dtype, value_at(&sum, r, part), total[part], slack_of(dtype, 40));
                assert_near(dtype, value_at(&mean, r, part), total[part] / 10, slack_of(dtype, 4));
                assert_near(dtype, value_at(&prod, r, part), product[part],
                            slack_of(dtype, size * 20));
            }
        }
        drop(&in), drop(&sum), drop(&mean), drop(&prod);
    }
}

static void reduce_of_nothing_and_of_nans(void **state)
{
    const int64_t nothing[] = {3, 0}, five[] = {1, 5};
    const double x[] = {1, (double)NAN, 3, (double)INFINITY, 2};
    operand in = make(TN_F32, 2, nothing, DENSE), out = make_reduced(TN_F32, &in.layout, 1);
    (void)state;
    in.layout.shape[1] = 0;
    reduce(TN_REDUCE_SUM, 1, &in, &out);
    assert_true(value_at(&out, 0, 0) == 0 && value_at(&out, 2, 0) == 0);
    drop(&in), drop(&out);
    in = make(TN_F64, 2, five, DENSE), out = make_reduced(TN_F64, &in.layout, 1);
    memcpy(in.first, x, sizeof x);
    for (int32_t kind = 0; kind < TN_REDUCE_COUNT; kind++) {
        reduce(kind, 1, &in, &out);
        assert_true(is_nan(value_at(&out, 0, 0)));
    }
    memcpy(in.first + 8, x, 8);
    reduce(TN_REDUCE_SUM, 1, &in, &out);
    assert_true(is_inf(value_at(&out, 0, 0)));
    reduce(TN_REDUCE_MAX, 1, &in, &out);
    assert_true(is_inf(value_at(&out, 0, 0)));
    reduce(TN_REDUCE_MIN, 1, &in, &out);
    assert_true(value_at(&out, 0, 0) == 1);
    drop(&in), drop(&out);
}

/* What is too great or too small on the way, or at the end. */
static void products_far_out(void **state)
{
    static const struct {
        double first, second; /* 500 of each, one after the other */
        double want;
    } rows[] = {
        {1e300, 1e-300, 1}, {1e-300, 1e300, 1}, {0.9, 0.1, 0}, {-3, 7, INFINITY}, {2, 0.5, 1}};
    const int64_t shape[] = {1000};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        operand in = make(TN_F64, 1, shape, DENSE), out = make_reduced(TN_F64, &in.layout, 1);
        for (int64_t i = 0; i < 1000; i++)
            memcpy(element_at(&in, i), i < 500 ? &rows[r].first : &rows[r].second, 8);
        reduce(TN_REDUCE_PROD, 1, &in, &out);
        long double got = value_at(&out, 0, 0), want = rows[r].want;
        assert_true(got == want || fabsl(got - want) <= 1000 * ulp(TN_F64, 1));
        drop(&in), drop(&out);
    }
}

static void empty_sum_prod_and_mean(void **state)
{
    static const tn_dtype dtypes[] = {TN_F64, TN_BF16, TN_C64, TN_I32, TN_U64};
    const int64_t shape[] = {2, 3, 0};
    (void)state;
    for (int i = 0; i < 5; i++) {
        const int whole = !format_of(dtypes[i]);
        operand in = make(dtypes[i], 3, shape, DENSE);
        operand out = make_reduced(dtypes[i], &in.layout, 1);
        reduce(TN_REDUCE_SUM, 1, &in, &out);
        assert_true(value_at(&out, 5, 0) == 0);
        reduce(TN_REDUCE_PROD, 1, &in, &out);
        assert_true(value_at(&out, 5, 0) == 1);
        if (!whole)
            reduce(TN_REDUCE_MEAN, 1, &in, &out);
        assert_true(whole || is_nan(value_at(&out, 5, 0)));
        drop(&in), drop(&out);
    }
}

/* Sums that cancel in doubles, and counting what is true. */
static void sums_of_twice_the_digits(void **state)
{
    const int64_t shape[] = {3};
    const double x[] = {1e16, 1, -1e16};
    operand in = make(TN_F64, 1, shape, DENSE), out = make_reduced(TN_F64, &in.layout, 1);
    (void)state;
    memcpy(in.first, x, sizeof x);
    reduce(TN_REDUCE_SUM, 1, &in, &out);
    assert_true(value_at(&out, 0, 0) == 1);
    drop(&in), drop(&out);
    in = make(TN_BOOL, 1, shape, DENSE), out = make_reduced(TN_I64, &in.layout, 1);
    memcpy(in.first, "\1\0\7", 3);
    reduce(TN_REDUCE_SUM, 1, &in, &out);
    assert_true(value_at(&out, 0, 0) == 2);
    drop(&in), drop(&out);
}

static const int64_t row_shapes[][3] = {{1, 1, 1}, {2, 3, 7}, {1, 2, 1100}, {5, 1, 64}, {3, 2, 2}};
enum { ROW_SHAPES = 5, TURNS = ROW_SHAPES * FLOATS * LAYOUTS };

static void softmax(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        const int64_t *shape = row_shapes[dice(ROW_SHAPES)], size = shape[2];
        const tn_dtype dtype = floats[dice(FLOATS)];
        const int logarithm = turn >= TURNS;
        operand in = make_random(dtype, 3, shape, (int)dice(LAYOUTS));
        operand out = make_poisoned(dtype, 3, shape, not_repeated((int)dice(LAYOUTS)));
        tn_op op = each_op(TN_OP_SOFTMAX, 0, &out.layout, 1);
        op.uses = logarithm ? TN_ELEMENTWISE_USES_LOG : 0;
        compute(&op, (const operand *const[]){&in, &out}, 3);
        long double sum = 0;
        for (int64_t i = 0; i < elements_of(&out.layout); i++) {
            const int64_t first = i / size * size;
            long double x = value_at(&in, i, 0) - value_at(&in, first, 0);
            sum = i == first ? 0 : sum;
            for (int64_t j = 0; j < size && i == first; j++)
                sum += expl(value_at(&in, first + j, 0) - value_at(&in, first, 0));
            assert_near(dtype, value_at(&out, i, 0), logarithm ? x - logl(sum) : expl(x) / sum,
                        slack_of(dtype, 8));
        }
        assert_outside_untouched(&out);
        drop(&in), drop(&out);
    }
}

static void softmax_far_out(void **state)
{
    const double x[] = {1000, 999, -(double)INFINITY, 0};
    const int64_t shape[] = {1, 4};
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        const tn_dtype dtype = wide ? TN_F64 : TN_F32;
        operand in = make(dtype, 2, shape, DENSE);
        for (int i = 0; i < 4; i++) {
            float narrow = (float)x[i];
            memcpy(element_at(&in, i), wide ? (const void *)&x[i] : &narrow,
                   (size_t)bytes_of(dtype));
        }
        tn_op op = each_op(TN_OP_SOFTMAX, 0, &in.layout, 1);
        compute(&op, (const operand *const[]){&in, &in}, 1); /* in place */
        assert_near(dtype, value_at(&in, 0, 0), 1 / (1 + expl(-1)), 1e-18L);
        assert_near(dtype, value_at(&in, 1, 0), 1 / (1 + expl(1)), 1e-18L);
        assert_true(value_at(&in, 2, 0) == 0 && value_at(&in, 3, 0) < 1e-300L);
        store_bits(element_at(&in, 1), bytes_of(dtype), UINT64_MAX); /* a NaN */
        compute(&op, (const operand *const[]){&in, &in}, 1);
        for (int i = 0; i < 4; i++)
            assert_true(is_nan(value_at(&in, i, 0)));
        drop(&in);
    }
}

/* The mean, 0 for rms, and what is divided by. */
static void moments(int32_t kind, const operand *in, int64_t first, int64_t size,
                    long double *out_mean, long double *out_root)
{
    long double mean = 0, variance = 0;
    for (int64_t j = 0; j < size && kind == TN_NORM_LAYER; j++)
        mean += value_at(in, first + j, 0) / (long double)size;
    for (int64_t j = 0; j < size; j++) {
        long double d = value_at(in, first + j, 0) - mean;
        variance += d * d / (long double)size;
    }
    *out_mean = mean;
    *out_root = sqrtl(variance + (long double)1e-5);
}

static void norm(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        const int64_t *shape = row_shapes[dice(ROW_SHAPES)], size = shape[2];
        const tn_dtype dtype = floats[dice(FLOATS)], other = dice(3) ? dtype : TN_F32;
        const int32_t kind = turn >= TURNS ? TN_NORM_RMS : TN_NORM_LAYER;
        operand in = make_random(dtype, 3, shape, (int)dice(LAYOUTS));
        operand out = make_poisoned(dtype, 3, shape, not_repeated((int)dice(LAYOUTS)));
        operand weight = make_random(other, 1, &size, (int)dice(REPEATED));
        operand bias = make_random(other, 1, &size, (int)dice(REPEATED));
        operand *rows[] = {&weight, &bias};
        for (int o = 0; o < 2; o++) {
            tn_layout layout = {.dtype = other, .rank = 3, .alignment = 1};
            memcpy(layout.shape, shape, 3 * sizeof *shape);
            layout.stride[2] = rows[o]->layout.stride[0];
            rows[o]->layout = layout;
        }
        tn_op op = each_op(TN_OP_NORM, kind, &out.layout, 1);
        op.count = 4;
        TN_PARAMS_MUTABLE(&op, elementwise)->value = 1e-5;
        compute(&op,
                (const operand *const[]){&in, &out, turn % 2 ? &weight : NULL,
                                         turn % 4 > 1 ? &bias : NULL},
                3);
        long double mean = 0, root = 1;
        for (int64_t i = 0; i < elements_of(&out.layout); i++) {
            if (i % size == 0)
                moments(kind, &in, i, size, &mean, &root);
            long double want = (value_at(&in, i, 0) - mean) / root;
            want *= turn % 2 ? value_at(&weight, i, 0) : 1;
            want += turn % 4 > 1 ? value_at(&bias, i, 0) : 0;
            assert_near(dtype, value_at(&out, i, 0), want, slack_of(dtype, 32));
        }
        assert_outside_untouched(&out);
        drop(&in), drop(&out), drop(&weight), drop(&bias);
    }
}

static void norm_in_place_and_far_from_0(void **state)
{
    const int64_t shape[] = {1, 4};
    const double x[] = {1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4};
    operand in = make(TN_F64, 2, shape, DENSE);
    tn_op op = each_op(TN_OP_NORM, TN_NORM_LAYER, &in.layout, 1);
    (void)state;
    op.count = 4;
    op.uses = TN_ELEMENTWISE_USES_IN_PLACE;
    memcpy(in.first, x, sizeof x);
    compute(&op, (const operand *const[]){&in, &in, NULL, NULL}, 1);
    for (int i = 0; i < 4; i++)
        assert_near(TN_F64, value_at(&in, i, 0), (i - 1.5L) / sqrtl(1.25L), 1e-18L);
    drop(&in);
}

static void rotary(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        const int64_t shape[] = {2, 3, turn % 3 == 2 ? 1300 : 14};
        const int64_t size = turn % 2 ? shape[2] : shape[2] - 4, half = size / 2;
        const tn_dtype dtype = floats[dice(FLOATS)];
        const int32_t kind = turn >= TURNS ? TN_ROTARY_PAIRS : TN_ROTARY_HALVES;
        const int64_t angles[] = {2, 3, half};
        operand in = make_random(dtype, 3, shape, (int)dice(LAYOUTS));
        operand out = make_poisoned(dtype, 3, shape, not_repeated((int)dice(LAYOUTS)));
        operand cosine = make_random(dice(5) ? dtype : TN_F32, 3, angles, REPEATED);
        operand sine = make_random(dice(5) ? dtype : TN_F32, 3, angles, (int)dice(LAYOUTS));
        tn_op op = each_op(TN_OP_ROTARY, kind, &out.layout, 1);
        op.count = 4;
        TN_PARAMS_MUTABLE(&op, elementwise)->size = size;
        compute(&op, (const operand *const[]){&in, &out, &cosine, &sine}, 3);
        for (int64_t i = 0; i < elements_of(&out.layout); i++) {
            const int64_t first = i / shape[2] * shape[2], e = i - first;
            const int64_t pair = kind == TN_ROTARY_PAIRS ? e / 2 : e % half;
            const int is_y = kind == TN_ROTARY_PAIRS ? e % 2 == 1 : e >= half;
            long double want = value_at(&in, i, 0);
            if (e < size) {
                int64_t x = kind == TN_ROTARY_PAIRS ? 2 * pair : pair;
                int64_t y = kind == TN_ROTARY_PAIRS ? x + 1 : x + half;
                long double a = value_at(&in, first + x, 0), b = value_at(&in, first + y, 0);
                long double c = value_at(&cosine, first / shape[2] * half + pair, 0);
                long double s = value_at(&sine, first / shape[2] * half + pair, 0);
                want = is_y ? a * s + b * c : a * c - b * s;
            }
            assert_near(dtype, value_at(&out, i, 0), want, slack_of(dtype, 8));
        }
        assert_outside_untouched(&out);
        operand copy = make_poisoned(dtype, 3, shape, not_repeated((int)dice(LAYOUTS)));
        for (int64_t i = 0; i < elements_of(&copy.layout); i++)
            memcpy(element_at(&copy, i), element_at(&in, i), (size_t)bytes_of(dtype));
        compute(&op, (const operand *const[]){&copy, &copy, &cosine, &sine}, 1);
        for (int64_t i = 0; i < elements_of(&copy.layout); i++)
            assert_memory_equal(element_at(&copy, i), element_at(&out, i), (size_t)bytes_of(dtype));
        drop(&in), drop(&out), drop(&copy), drop(&cosine), drop(&sine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduce_of_floats),
        cmocka_unit_test(reduce_of_whole_numbers),
        cmocka_unit_test(max_below_and_min_above_0),
        cmocka_unit_test(reduce_of_complex_numbers),
        cmocka_unit_test(reduce_of_nothing_and_of_nans),
        cmocka_unit_test(products_far_out),
        cmocka_unit_test(empty_sum_prod_and_mean),
        cmocka_unit_test(sums_of_twice_the_digits),
        cmocka_unit_test(softmax),
        cmocka_unit_test(softmax_far_out),
        cmocka_unit_test(norm),
        cmocka_unit_test(norm_in_place_and_far_from_0),
        cmocka_unit_test(rotary),
    };
    return run_suite("kernels.ref_rows", tests);
}
