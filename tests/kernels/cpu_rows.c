/* The module cpu's kernels on rows, of every instruction set there is here: softmax, norms, rotary,
 * reductions, against loops in long double. Bounds, with u the rounding of f32 (f64 for f64) and U that of
 * out, for rows of n:
 *     softmax   (8 + 2 |x - max| + n / 64) u, relative, and U; its logarithm the same, absolute
 *     norm      (16 + n / 64) u of the largest part, and U
 *     rotary    4 u of |x| + |y|, and U
 *     reduce    (8 + n / 64) u of the sum of sizes, and U; max and min are exact but for U */
#include "cpu_make.h"

#include "params.h"
#include "tenon/module/op/norm.h"
#include "tenon/module/op/reduce.h"
#include "tenon/module/op/rotary.h"
#include "tenon/module/op/softmax.h"

static const tn_dtype reals[] = {TN_F32, TN_F64, TN_BF16, TN_F16};

static double unit(tn_dtype dtype)
{
    return dtype == TN_F64 ? 0x1p-53 : 0x1p-24;
}

/* What rounding to out's dtype may add: half a step, or half of the smallest one. */
static double last(tn_dtype dtype, double value)
{
    double tiny = dtype == TN_F16 ? 0x1p-24 : dtype == TN_F64 ? 0x1p-1074 : 0x1p-133;
    return 1.01 * cpu_unit(dtype) * fabs(value) + tiny;
}

static void check(const tn_kernel_row *row, const cpu_case *it, int64_t n, double wanted,
                  double bound)
{
    double found = cpu_get(it, TN_ELEMENTWISE_OUT, n);
    bound += last(it->op.operand[TN_ELEMENTWISE_OUT].dtype, wanted);
    if (!cpu_close(found, wanted, bound))
        fail_msg("%s, kind %d, dtype %#x, rows of %lld: element %lld is %.9g, not %.9g +- %.3g",
                 row->name, (int)TN_PARAMS(&it->op, elementwise)->kind,
                 (unsigned)it->op.operand[0].dtype,
                 (long long)TN_PARAMS(&it->op, elementwise)->size, (long long)n, found, wanted,
                 bound);
}

/* A case of in and out with rows of `size`, which the numbers of a test choose. */
static void make(cpu_case *it, tn_dtype in, tn_dtype out, int64_t size, int number)
{
    int64_t shape[] = {3, 2, size};
    *it = (cpu_case){
        .op = {.params = PARAMS(elementwise, .size = size, .rows = 6, .elements = 6 * size)}};
    cpu_add_lying(it, TN_ELEMENTWISE_IN, in, 3, shape, number % CPU_LIES, number & 1);
    cpu_fill(it, TN_ELEMENTWISE_IN, -5, 5);
    if (number % 5 == 4 && in == out)
        cpu_in_place(it);
    else
        cpu_add_lying(it, TN_ELEMENTWISE_OUT, out, 3, shape, number / CPU_LIES % CPU_LIES,
                      number & 2);
}

/* In's numbers before they are overwritten. */
static double *values_of(const cpu_case *it, int32_t operand)
{
    int64_t count = cpu_elements(&it->op.operand[operand]);
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = cpu_get(it, operand, i);
    return values;
}

static void check_softmax(const tn_kernel_row *row, cpu_case *it)
{
    int64_t size = TN_PARAMS(&it->op, elementwise)->size,
            rows = TN_PARAMS(&it->op, elementwise)->rows;
    double *x = values_of(it, TN_ELEMENTWISE_IN), u = unit(it->op.operand[TN_ELEMENTWISE_IN].dtype);
    cpu_run(row, it);
    for (int64_t r = 0; r < rows; r++) {
        double max = -INFINITY;
        long double sum = 0;
        for (int64_t i = 0; i < size; i++)
            max = fmax(max, x[r * size + i]);
        for (int64_t i = 0; i < size; i++)
            sum += expl((long double)x[r * size + i] - max);
        for (int64_t i = 0; i < size; i++) {
            double d = x[r * size + i] - max, factor = (8 + (double)size / 64) * u;
            double far = fmin(fabs(d), 1e4); /* where exp is nothing already */
            if (it->op.uses & TN_ELEMENTWISE_USES_LOG)
                check(row, it, r * size + i, (double)(d - logl(sum)), factor + 4 * u * far);
            else
                check(row, it, r * size + i, (double)(expl(d) / sum),
                      (factor + 2 * u * far) * exp(d) / (double)sum + 0x1p-140);
        }
    }
    cpu_check_gaps(it, TN_ELEMENTWISE_OUT);
    free(x);
}

/* About vectors, pairs of them, blocks, and rows that are kept. */
static const int64_t sizes[] = {1,  2,  3,   7,    8,    15,   16,   17,   31,   32,   33,
                                48, 64, 100, 1023, 1024, 1025, 1056, 2500, 4095, 4096, 4097};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Long rows in fewer ways. */
static bool is_spared(int c)
{
    return sizes[c / 4 % SIZES] > 2000 && c / (4 * SIZES) >= (test_reduced() ? 2 : 8);
}

static void softmax_of(const tn_kernel_row *row)
{
    for (int c = 0; c < SIZES * 4 * 24; c++) {
        cpu_case it;
        if (is_spared(c) || !test_sampled((uint64_t)c, 8))
            continue;
        tn_dtype dtype = reals[c % 4], out = c % 7 == 0 && dtype != TN_F64 ? TN_F32 : dtype;
        make(&it, dtype, out, sizes[c / 4 % SIZES], c);
        it.op.uses |= c / (4 * SIZES) & 1 ? TN_ELEMENTWISE_USES_LOG : 0;
        check_softmax(row, &it);
        cpu_end(&it);
    }
}

static void softmax_is_right(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_SOFTMAX, softmax_of);
}

/* Rows longer than what is kept between passes, and shares that are subnormal or nothing. */
static void long_softmax_of(const tn_kernel_row *row)
{
    for (int c = 0; c < 8; c++) {
        cpu_case it;
        make(&it, reals[c % 4], reals[c % 4], 5003, c == 7 ? 4 : c);
        cpu_fill(&it, TN_ELEMENTWISE_IN, c < 4 ? -10 : -120, c < 4 ? 10 : 0);
        check_softmax(row, &it);
        cpu_end(&it);
    }
}

static void long_rows_are_right(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_SOFTMAX, long_softmax_of);
}

/* Row 1 has something strange in its middle or at its end, row 2 nothing but minus infinities. */
static void strange_softmax_of(const tn_kernel_row *row)
{
    static const double strange[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const int64_t widths[] = {37, 96};
    for (int c = 0; c < 4 * 4 * 2 * 2 * 2; c++) {
        cpu_case it;
        int64_t n = widths[c / 16 % 2], place = c / 32 % 2 ? n - 1 : 5;
        double value = strange[c / 4 % 4];
        bool log_wanted = c / 64 % 2;
        make(&it, reals[c % 4], reals[c % 4], n, 0);
        it.op.uses |= log_wanted ? TN_ELEMENTWISE_USES_LOG : 0;
        cpu_put(&it, TN_ELEMENTWISE_IN, n + place, value);
        for (int64_t i = 0; i < n; i++)
            cpu_put(&it, TN_ELEMENTWISE_IN, 2 * n + i, -INFINITY);
        cpu_run(row, &it);
        for (int64_t i = 0; i < n; i++) {
            double other = cpu_get(&it, TN_ELEMENTWISE_OUT, n + i);
            assert_true(isfinite(cpu_get(&it, TN_ELEMENTWISE_OUT, i)));
            assert_true(isnan(cpu_get(&it, TN_ELEMENTWISE_OUT, 2 * n + i)));
            if (value != -INFINITY)
                assert_true(i == place || value != INFINITY ? isnan(other) : other != 1);
            else
                assert_true(i == place ? other == (log_wanted ? -INFINITY : 0) : isfinite(other));
        }
        cpu_end(&it);
    }
}

static void nans_and_infinities_stay_in_their_row(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_SOFTMAX, strange_softmax_of);
}

/* Whatever the sign of the greatest, the zeros included; and what is masked has no share. */
static void signs_of(const tn_kernel_row *row)
{
    static const double bounds[][2] = {{-9, -1}, {1, 9}, {-9, -0.0}, {-1e-3, 1e-3}};
    for (int c = 0; c < 4 * 4 * SIZES; c += test_reduced() ? 3 : 1) {
        cpu_case it;
        if (!test_sampled((uint64_t)c, 4))
            continue;
        make(&it, reals[c % 4], reals[c % 4], sizes[c / 16], c % 5);
        cpu_fill(&it, TN_ELEMENTWISE_IN, bounds[c / 4 % 4][0], bounds[c / 4 % 4][1]);
        for (int64_t i = 0; i < 6 * TN_PARAMS(&it.op, elementwise)->size; i++) {
            if (i % 3 == 1 && TN_PARAMS(&it.op, elementwise)->size > 2)
                cpu_put(&it, TN_ELEMENTWISE_IN, i, c % 3 ? -INFINITY : -1000);
        }
        check_softmax(row, &it);
        for (int64_t i = 1; i < 6 * TN_PARAMS(&it.op, elementwise)->size &&
                            TN_PARAMS(&it.op, elementwise)->size > 2;
             i += 3)
            assert_true(cpu_get(&it, TN_ELEMENTWISE_OUT, i) == 0);
        cpu_end(&it);
    }
}

static void signs_and_masks_do_not_matter(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_SOFTMAX, signs_of);
}

static void add_norm_row(cpu_case *it, int32_t operand, tn_dtype dtype, int64_t size, int number)
{
    int64_t shape[] = {3, 2, size}, strides[] = {0, 0, number % 3 == 1 ? -2 : 1};
    cpu_add(it, operand, dtype, 3, shape, strides, number & 1);
    cpu_fill(it, operand, -2, 2);
    it->op.uses |=
        operand == TN_NORM_WEIGHT ? TN_ELEMENTWISE_USES_WEIGHT : TN_ELEMENTWISE_USES_BIAS;
}

static void check_norm(const tn_kernel_row *row, cpu_case *it)
{
    const tn_elementwise_op *op = TN_PARAMS(&it->op, elementwise);
    double *x = values_of(it, TN_ELEMENTWISE_IN), u = unit(it->op.operand[TN_ELEMENTWISE_IN].dtype);
    cpu_run(row, it);
    for (int64_t r = 0; r < op->rows; r++) {
        long double mean = 0, squares = 0;
        double most = 0;
        for (int64_t i = 0; i < op->size && op->kind == TN_NORM_LAYER; i++)
            mean += (long double)x[r * op->size + i] / op->size;
        for (int64_t i = 0; i < op->size; i++) {
            long double d = x[r * op->size + i] - mean;
            squares += d * d / op->size;
            most = fmax(most, fabs(x[r * op->size + i]));
        }
        double factor = (double)(1 / sqrtl(squares + op->value));
        for (int64_t i = 0; i < op->size; i++) {
            int64_t n = r * op->size + i;
            double w = it->op.operand[TN_NORM_WEIGHT].dtype ? cpu_get(it, TN_NORM_WEIGHT, n) : 1;
            double b = it->op.operand[TN_NORM_BIAS].dtype ? cpu_get(it, TN_NORM_BIAS, n) : 0;
            double bound = (16 + (double)op->size / 64) * u * (most * factor * fabs(w) + fabs(b));
            check(row, it, n, (double)(x[n] - mean) * factor * w + b, bound);
        }
    }
    cpu_check_gaps(it, TN_ELEMENTWISE_OUT);
    free(x);
}

static void norm_of(const tn_kernel_row *row)
{
    for (int c = 0; c < SIZES * 4 * 24; c++) {
        cpu_case it;
        if (is_spared(c) || !test_sampled((uint64_t)c, 8))
            continue;
        tn_dtype dtype = reals[c % 4], other = dtype == TN_F64 ? TN_F64 : reals[c % 3 ? 0 : c % 4];
        make(&it, dtype, c % 11 == 0 ? other : dtype, sizes[c / 4 % SIZES], c);
        TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = c / (4 * SIZES) % 2;
        TN_PARAMS_MUTABLE(&it.op, elementwise)->value = 1e-5;
        if (c / (8 * SIZES) % 2)
            add_norm_row(&it, TN_NORM_WEIGHT, other, TN_PARAMS(&it.op, elementwise)->size, c);
        if (c / (16 * SIZES) % 2)
            add_norm_row(&it, TN_NORM_BIAS, other, TN_PARAMS(&it.op, elementwise)->size, c + 1);
        check_norm(row, &it);
        cpu_end(&it);
    }
}

static void norms_are_right(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_NORM, norm_of);
}

static void rotary_of(const tn_kernel_row *row)
{
    static const int64_t turned[] = {2, 4, 6, 16, 30, 32, 64, 128, 2100};
    for (int c = 0; c < 9 * 4 * 24; c++) {
        if (!test_sampled((uint64_t)c, 8))
            continue;
        cpu_case it;
        tn_dtype dtype = reals[c % 4], angles = dtype == TN_F64 ? TN_F64 : reals[c % 3 ? 0 : c % 4];
        int64_t size = turned[c / 4 % 9], width = size + (c / 36 % 3), half = size / 2;
        int64_t shape[] = {3, 2, half}, strides[] = {half, 0, 1};
        make(&it, dtype, dtype, width, c);
        TN_PARAMS_MUTABLE(&it.op, elementwise)->size = size;
        TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = c / 36 % 2;
        it.op.uses |= width != size ? TN_ELEMENTWISE_USES_PARTIAL : 0;
        cpu_add(&it, TN_ROTARY_COS, angles, 3, shape, strides, 0);
        cpu_add(&it, TN_ROTARY_SIN, angles, 3, shape, strides, 1);
        cpu_fill(&it, TN_ROTARY_COS, -1, 1);
        cpu_fill(&it, TN_ROTARY_SIN, -1, 1);
        double *x = values_of(&it, TN_ELEMENTWISE_IN), u = unit(dtype);
        cpu_run(row, &it);
        for (int64_t n = 0; n < 6 * width; n++) {
            int64_t at = n % width, first = n - at,
                    pairs = TN_PARAMS(&it.op, elementwise)->kind == TN_ROTARY_PAIRS;
            if (at >= size) {
                check(row, &it, n, x[n], 0);
                continue;
            }
            int64_t i = pairs ? at / 2 : at % half, is_y = pairs ? at % 2 : at / half;
            double a = x[first + (pairs ? 2 * i : i)],
                   b = x[first + (pairs ? 2 * i + 1 : i + half)];
            double cosine = cpu_get(&it, TN_ROTARY_COS, n / width * half + i);
            double sine = cpu_get(&it, TN_ROTARY_SIN, n / width * half + i);
            check(row, &it, n, is_y ? a * sine + b * cosine : a * cosine - b * sine,
                  4 * u * (fabs(a) + fabs(b)));
        }
        cpu_check_gaps(&it, TN_ELEMENTWISE_OUT);
        free(x);
        cpu_end(&it);
    }
}

static void rotary_is_right(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_ROTARY, rotary_of);
}

static double reduced(int32_t kind, const double *x, int64_t n, double *out_sizes)
{
    long double value = kind == TN_REDUCE_MAX ? -INFINITY : kind == TN_REDUCE_MIN ? INFINITY : 0;
    *out_sizes = 0;
    for (int64_t i = 0; i < n; i++) {
        if (kind == TN_REDUCE_MAX)
            value = isnan(x[i]) || x[i] > value ? x[i] : value;
        else if (kind == TN_REDUCE_MIN)
            value = isnan(x[i]) || x[i] < value ? x[i] : value;
        else
            value += x[i];
        *out_sizes += fabs(x[i]);
    }
    return (double)(kind == TN_REDUCE_MEAN ? value / n : value);
}

/* [3, 2, a, b] to [3, 2, 1, 1], or to [3, 2, a, 1]. */
static void make_reduce(cpu_case *it, tn_dtype in, tn_dtype out, const int64_t *shape, int32_t axes,
                        int lies, int number)
{
    int64_t to[4], strides[4], dense = 1, size = 1;
    for (int32_t d = 3; d >= 0; d--) {
        bool gone = d >= 4 - axes;
        to[d] = gone ? 1 : shape[d];
        strides[d] = gone ? 0 : dense * (number % 2 ? -1 : 1);
        dense *= to[d];
        size *= gone ? shape[d] : 1;
    }
    *it = (cpu_case){.op = {.params = PARAMS(elementwise, .axes = axes, .size = size, .rows = dense,
                                             .elements = dense)}};
    cpu_add_lying(it, TN_ELEMENTWISE_IN, in, 4, shape, lies, number & 1);
    cpu_add(it, TN_ELEMENTWISE_OUT, out, 4, to, strides, number & 2);
}

static void check_reduce(const tn_kernel_row *row, cpu_case *it)
{
    const tn_elementwise_op *op = TN_PARAMS(&it->op, elementwise);
    double *x = values_of(it, TN_ELEMENTWISE_IN), u = unit(it->op.operand[TN_ELEMENTWISE_IN].dtype),
           sizes_sum;
    cpu_run(row, it);
    for (int64_t i = 0; i < op->elements; i++) {
        double wanted = reduced(op->kind, x + i * op->size, op->size, &sizes_sum);
        double factor = (8 + (double)op->size / 64) * u;
        double bound = op->kind == TN_REDUCE_SUM    ? factor * sizes_sum
                       : op->kind == TN_REDUCE_MEAN ? factor * sizes_sum / (double)op->size
                                                    : 0;
        check(row, it, i, wanted, bound);
    }
    cpu_check_gaps(it, TN_ELEMENTWISE_OUT);
    free(x);
}

static void reduce_of(const tn_kernel_row *row)
{
    static const int64_t inner[] = {1, 2, 7, 16, 33, 130};
    for (int c = 0; c < 4 * 4 * 6 * 4 * 6; c++) {
        if (!test_sampled((uint64_t)c, 8))
            continue;
        int64_t shape[] = {3, 2, inner[c / 96 % 4], inner[c / 16 % 6]};
        cpu_case it;
        tn_dtype dtype = reals[c / 4 % 4], out = c % 7 == 3 && dtype != TN_F64 ? TN_F32 : dtype;
        make_reduce(&it, dtype, out, shape, 1 + c % 3, c / 384 % CPU_LIES, c);
        TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = c % 4;
        cpu_fill(&it, TN_ELEMENTWISE_IN, -3, 3);
        if (c % 29 == 0)
            cpu_put(&it, TN_ELEMENTWISE_IN, c % cpu_elements(&it.op.operand[0]), NAN);
        check_reduce(row, &it);
        cpu_end(&it);
    }
}

static void reductions_are_right(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_REDUCE, reduce_of);
}

/* One element of many, and many of many: on threads or not, the same bits. */
static void large_reduce_of(const tn_kernel_row *row)
{
    static const int64_t shapes[][4] = {
        {1, 1, 1, 300007}, {1, 1, 3, 100003}, {1, 1, 200, 1501}, {1, 1, 1501, 200}};
    for (int c = 0; c < 4 * 3; c++) {
        cpu_case it;
        double results[2][1501];
        make_reduce(&it, TN_F32, TN_F32, shapes[c / 3], 1, c % 3 == 2 ? CPU_TURNED : CPU_DENSE, 0);
        TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = c % 3 == 1 ? TN_REDUCE_MAX : TN_REDUCE_SUM;
        cpu_fill(&it, TN_ELEMENTWISE_IN, -1, 1);
        check_reduce(row, &it);
        for (int k = 0; k < 2; k++) {
            cpu_run_on(row, &it, NULL, k ? 8 : 1);
            for (int64_t i = 0; i < TN_PARAMS(&it.op, elementwise)->elements; i++)
                results[k][i] = cpu_get(&it, TN_ELEMENTWISE_OUT, i);
        }
        assert_memory_equal(results[0], results[1],
                            (size_t)TN_PARAMS(&it.op, elementwise)->elements *
                                sizeof results[0][0]);
        cpu_end(&it);
    }
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_REDUCE, large_reduce_of);
}

static void empty_reduce_of(const tn_kernel_row *row)
{
    int64_t shape[] = {3, 2, 4, 0};
    for (int c = 0; c < 4; c++) {
        cpu_case it;
        make_reduce(&it, reals[c / 2], reals[c / 2], shape, 1, CPU_DENSE, 0);
        TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = c % 2 ? TN_REDUCE_MEAN : TN_REDUCE_SUM;
        cpu_run(row, &it);
        for (int64_t i = 0; i < 24; i++)
            assert_true(cpu_close(cpu_get(&it, TN_ELEMENTWISE_OUT, i), c % 2 ? NAN : 0, 0));
        cpu_end(&it);
    }
}

static void product_of(const tn_kernel_row *row)
{
    int64_t shape[] = {1, 1, 2, 3};
    tn_refusal why;
    cpu_case it;
    make_reduce(&it, TN_F32, TN_F32, shape, 1, CPU_DENSE, 0);
    TN_PARAMS_MUTABLE(&it.op, elementwise)->kind = TN_REDUCE_PROD;
    assert_int_equal(cpu_admit(row, &it, &why), TN_UNSUPPORTED);
    assert_int_equal(why.code, TN_REFUSE_FEATURE);
    assert_string_equal(why.what, "kind");
    assert_int_equal(why.found, TN_REDUCE_PROD);
    assert_contains(why.text, "wider range");
    cpu_end(&it);
}

static void products_are_refused(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_REDUCE, product_of);
}

static void of_nothing_there_is_something(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_REDUCE, empty_reduce_of);
}

/* Many rows, on threads. */
static void large_rows_of(const tn_kernel_row *row)
{
    int64_t shape[] = {301, 1003};
    cpu_case it = {
        .op = {.params = PARAMS(elementwise, .size = 1003, .rows = 301, .elements = 301 * 1003)}};
    cpu_add(&it, TN_ELEMENTWISE_IN, TN_F32, 2, shape, NULL, 1);
    cpu_add(&it, TN_ELEMENTWISE_OUT, TN_F32, 2, shape, NULL, 0);
    cpu_fill(&it, TN_ELEMENTWISE_IN, -4, 4);
    if (row->op == TN_OP_SOFTMAX)
        check_softmax(row, &it);
    else
        check_norm(row, &it);
    cpu_end(&it);
}

static void many_rows_on_threads(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_SOFTMAX, large_rows_of);
    cpu_each_row(TN_OP_NORM, large_rows_of);
}

static void mixed_of(const tn_kernel_row *row)
{
    tn_refusal why;
    cpu_case it;
    make(&it, TN_F64, TN_F32, 4, 0);
    assert_int_equal(cpu_admit(row, &it, &why), TN_UNSUPPORTED);
    assert_int_equal(why.code, TN_REFUSE_DTYPE);
    assert_string_equal(why.what, "out");
    assert_int_equal(why.found, TN_F32);
    assert_contains(why.text, row->op == TN_OP_ROTARY ? "in's dtype" : "all operands are f64");
    cpu_end(&it);
}

static void f64_is_not_mixed_with_others(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_SOFTMAX, mixed_of);
    cpu_each_row(TN_OP_NORM, mixed_of);
    cpu_each_row(TN_OP_ROTARY, mixed_of);
    cpu_each_row(TN_OP_REDUCE, mixed_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_is_right),
        cmocka_unit_test(long_rows_are_right),
        cmocka_unit_test(nans_and_infinities_stay_in_their_row),
        cmocka_unit_test(signs_and_masks_do_not_matter),
        cmocka_unit_test(norms_are_right),
        cmocka_unit_test(rotary_is_right),
        cmocka_unit_test(reductions_are_right),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(of_nothing_there_is_something),
        cmocka_unit_test(products_are_refused),
        cmocka_unit_test(many_rows_on_threads),
        cmocka_unit_test(f64_is_not_mixed_with_others),
    };
    return run_suite("kernels.cpu_rows", tests);
}
