/* The module cpu's kernels on elements, of every instruction set there is here: permute, cast and fill
 * exactly; unary functions within the errors that shared/vector_math.h states, binary ones with one rounding. */
#include "cpu_make.h"

#include "params.h"
#include "tenon/module/op/binary.h"
#include "tenon/module/op/cast.h"
#include "tenon/module/op/fill.h"
#include "tenon/module/op/permute.h"
#include "tenon/module/op/unary.h"

static const tn_dtype reals[] = {TN_F32, TN_F64, TN_BF16, TN_F16};
static const double strange[] = {
    0.0,     -0.0,     NAN,     INFINITY, -INFINITY, 0x1p-149, -0x1p-130, 3.4e38,
    -3.4e38, 0x1p-126, 0x1p-24, 65504,    65520,     1,        -1,        0x1.8p-25,
    88.8,    -103.9,   1e-8,    -87.5,    127.5,     128.5,    -128.5,    2.5,
    0x1p31,  -0x1p31,  255.5,   -0.5,     3.5,       1.5,      0x1p22,    0x1.8p23};
enum { STRANGE = sizeof strange / sizeof strange[0] };

static void no_two_bytes_alike(cpu_case *it, int32_t operand)
{
    cpu_memory *memory = &it->memory[operand];
    for (size_t i = 0; i < memory->bytes; i++)
        memory->low[i] = (unsigned char)cpu_random();
}

static void check_copy(const tn_kernel_row *row, const cpu_case *it)
{
    size_t size = (size_t)cpu_size(it->op.operand[0].dtype);
    for (int64_t i = 0; i < cpu_elements(&it->op.operand[0]); i++) {
        if (memcmp(cpu_at(it, TN_ELEMENTWISE_IN, i), cpu_at(it, TN_ELEMENTWISE_OUT, i), size) != 0)
            fail_msg("%s: element %lld of %zu bytes differs", row->name, (long long)i, size);
    }
    cpu_check_gaps(it, TN_ELEMENTWISE_OUT);
}

static void permute_of(const tn_kernel_row *row)
{
    static const tn_dtype dtypes[] = {TN_U8, TN_I16, TN_F32, TN_C64, TN_C128};
    static const int64_t shapes[][3] = {{1, 1, 1},   {2, 3, 5},   {4, 16, 16}, {3, 17, 33},
                                        {1, 64, 70}, {5, 31, 65}, {2, 300, 7}, {1, 129, 193}};
    for (int c = 0; c < 5 * 8 * CPU_LIES * CPU_LIES; c++) {
        if (test_fewest() && !test_sampled((uint64_t)c, 5))
            continue;
        cpu_case it = {0};
        const int64_t *shape = shapes[c / 5 % 8];
        cpu_add_lying(&it, TN_ELEMENTWISE_IN, dtypes[c % 5], 3, shape, c / 40 % CPU_LIES, c & 1);
        cpu_add_lying(&it, TN_ELEMENTWISE_OUT, dtypes[c % 5], 3, shape, c / 40 / CPU_LIES, c & 2);
        no_two_bytes_alike(&it, TN_ELEMENTWISE_IN);
        cpu_run(row, &it);
        check_copy(row, &it);
        cpu_end(&it);
    }
}

static void permute_copies_whatever_the_strides(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_PERMUTE, permute_of);
}

/* Planes with dimensions before, between and behind; what is broadcast; on threads. */
static void planes_of(const tn_kernel_row *row)
{
    static const struct {
        int64_t shape[4], in[4];
    } cases[] = {{{3, 50, 2, 70}, {7000, 1, 3500, 50}}, {{50, 3, 70, 2}, {1, 7000, 50, 3500}},
                 {{600, 1, 1, 500}, {1, 0, 0, 600}},    {{7, 9, 11, 13}, {1, 7, 63, 693}},
                 {{7, 9, 11, 13}, {0, 13, 0, 1}},       {{40, 1, 1, 33}, {1, 0, 0, 0}},
                 {{40, 1, 2, 33}, {-1, 0, 1320, 40}}};
    for (size_t c = 0; c < 7 * 4; c++) {
        static const tn_dtype dtypes[] = {TN_I8, TN_F16, TN_I32, TN_F64};
        cpu_case it = {.op = {.uses = TN_ELEMENTWISE_USES_BROADCAST | TN_ELEMENTWISE_USES_STRIDES}};
        cpu_add(&it, TN_ELEMENTWISE_IN, dtypes[c % 4], 4, cases[c / 4].shape, cases[c / 4].in, 1);
        cpu_add(&it, TN_ELEMENTWISE_OUT, dtypes[c % 4], 4, cases[c / 4].shape, NULL, 0);
        no_two_bytes_alike(&it, TN_ELEMENTWISE_IN);
        cpu_run(row, &it);
        check_copy(row, &it);
        cpu_end(&it);
    }
}

static void permute_turns_planes(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_PERMUTE, planes_of);
}

static double casted(tn_dtype to, double x)
{
    double low = to == TN_I8 ? -128 : to == TN_U8 ? 0 : -0x1p31;
    double high = to == TN_I8 ? 127 : to == TN_U8 ? 255 : 0x1p31 - 1;
    unsigned char room[8];
    if (to == TN_I8 || to == TN_U8 || to == TN_I32)
        return isnan(x) ? 0 : x <= low ? low : x >= high ? high : trunc(x);
    cpu_write(to, room, x);
    return cpu_read(to, room);
}

static void fill_strangely(cpu_case *it, int32_t operand)
{
    tn_dtype dtype = it->op.operand[operand].dtype;
    bool whole = (dtype & 255) < TN_DTYPE_CODE_FLOAT;
    for (int64_t i = 0; i < cpu_elements(&it->op.operand[operand]); i++) {
        double x =
            i % 3 == 1 ? strange[i / 3 % STRANGE] : ldexp(cpu_uniform(-1, 1), (int)(i % 40) - 20);
        double low = dtype == TN_U8 ? 0 : dtype == TN_I8 ? -128 : -0x1p31;
        double high = dtype == TN_U8 ? 255 : dtype == TN_I8 ? 127 : 0x1p31 - 1;
        cpu_put(it, operand, i, whole ? floor(cpu_uniform(low, high)) : x);
    }
}

static bool is_cast(tn_dtype in, tn_dtype out)
{
    return in != out && ((in != TN_F64 && in != TN_I32) || out == TN_F32);
}

static void cast_of(const tn_kernel_row *row)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_BF16, TN_F16, TN_F64, TN_I8, TN_U8, TN_I32};
    static const int64_t shapes[][2] = {{1, 1},    {3, 7},  {5, 64}, {2, 333},
                                        {1, 5000}, {3, 44}, {3, 40}, {3, 48}};
    for (int c = 0; c < 49 * 8 * CPU_LIES; c++) {
        tn_dtype in = dtypes[c % 7], out = dtypes[c / 7 % 7];
        cpu_case it = {0};
        if (!is_cast(in, out) || (test_fewest() && !test_sampled((uint64_t)c, 4)))
            continue;
        cpu_add_lying(&it, TN_ELEMENTWISE_IN, in, 2, shapes[c / 49 % 8], c / 392, c & 1);
        cpu_add_lying(&it, TN_ELEMENTWISE_OUT, out, 2, shapes[c / 49 % 8], c % CPU_LIES, c & 2);
        fill_strangely(&it, TN_ELEMENTWISE_IN);
        cpu_run(row, &it);
        for (int64_t i = 0; i < cpu_elements(&it.op.operand[0]); i++) {
            double x = cpu_get(&it, TN_ELEMENTWISE_IN, i),
                   found = cpu_get(&it, TN_ELEMENTWISE_OUT, i);
            if (!cpu_close(found, casted(out, x), 0))
                fail_msg("%s: %a of %#x is %a in %#x, not %a", row->name, x, (unsigned)in, found,
                         (unsigned)out, casted(out, x));
            if (x == 0 && (out & 255) >= TN_DTYPE_CODE_FLOAT)
                assert_int_equal(!!signbit(found), !!signbit(x));
        }
        cpu_check_gaps(&it, TN_ELEMENTWISE_OUT);
        cpu_end(&it);
    }
}

static void casts_round_once(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_CAST, cast_of);
}

/* Every f16 and bf16 there is, both ways. */
static void small_floats_of(const tn_kernel_row *row)
{
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16};
    int64_t shape[] = {65536};
    for (int c = 0; c < 2; c++) {
        cpu_case there = {0}, back = {0};
        cpu_add(&there, TN_ELEMENTWISE_IN, dtypes[c], 1, shape, NULL, 0);
        cpu_add(&there, TN_ELEMENTWISE_OUT, TN_F32, 1, shape, NULL, 0);
        for (int64_t i = 0; i < 65536; i++) {
            uint16_t bits = (uint16_t)i;
            memcpy(cpu_at(&there, TN_ELEMENTWISE_IN, i), &bits, 2);
        }
        cpu_run(row, &there);
        cpu_add(&back, TN_ELEMENTWISE_IN, TN_F32, 1, shape, NULL, 0);
        cpu_add(&back, TN_ELEMENTWISE_OUT, dtypes[c], 1, shape, NULL, 0);
        memcpy(back.memory[0].low, there.memory[1].low, 65536 * 4);
        cpu_run(row, &back);
        for (int64_t i = 0; i < 65536; i++) {
            double x = cpu_get(&there, TN_ELEMENTWISE_IN, i);
            uint16_t bits;
            memcpy(&bits, cpu_at(&back, TN_ELEMENTWISE_OUT, i), 2);
            assert_true(cpu_close(cpu_get(&there, TN_ELEMENTWISE_OUT, i), x, 0));
            if (!isnan(x))
                assert_int_equal(bits, i);
        }
        cpu_end(&there);
        cpu_end(&back);
    }
}

static void small_floats_come_back(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_CAST, small_floats_of);
}

/* Between each pair of neighbours: the middle, and what is beside it. */
static void middles_of(const tn_kernel_row *row)
{
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16};
    enum { COUNT = 0x7f00 };
    int64_t shape[] = {3 * COUNT};
    for (int c = 0; c < 2; c++) {
        cpu_case it = {0};
        int mantissa = c ? 7 : 10, exponent = c ? 8 : 5;
        int64_t greatest = c ? 0x7f7f : 0x7bff;
        cpu_add(&it, TN_ELEMENTWISE_IN, TN_F32, 1, shape, NULL, 0);
        cpu_add(&it, TN_ELEMENTWISE_OUT, dtypes[c], 1, shape, NULL, 0);
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t n = i < greatest ? i : greatest - 1;
            double a = cpu_half_value((uint32_t)n, mantissa, exponent);
            double b = cpu_half_value((uint32_t)n + 1, mantissa, exponent);
            float middle = (float)((a + b) / 2);
            cpu_put(&it, TN_ELEMENTWISE_IN, 3 * i, (double)nextafterf(middle, -1));
            cpu_put(&it, TN_ELEMENTWISE_IN, 3 * i + 1, (double)middle);
            cpu_put(&it, TN_ELEMENTWISE_IN, 3 * i + 2, (double)nextafterf(middle, INFINITY));
        }
        cpu_run(row, &it);
        for (int64_t i = 0; i < 3 * COUNT; i++) {
            double x = cpu_get(&it, TN_ELEMENTWISE_IN, i);
            assert_true(cpu_get(&it, TN_ELEMENTWISE_OUT, i) == casted(dtypes[c], x));
        }
        cpu_end(&it);
    }
}

static void middles_go_to_the_even_one(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_CAST, middles_of);
}

static void refused_casts_of(const tn_kernel_row *row)
{
    static const tn_dtype pairs[][2] = {{TN_F64, TN_BF16}, {TN_I32, TN_F16}, {TN_F32, TN_I64}};
    int64_t shape[] = {4};
    for (int c = 0; c < 3; c++) {
        tn_refusal why;
        cpu_case it = {0};
        cpu_add(&it, TN_ELEMENTWISE_IN, pairs[c][0], 1, shape, NULL, 0);
        cpu_add(&it, TN_ELEMENTWISE_OUT, pairs[c][1], 1, shape, NULL, 0);
        assert_int_equal(cpu_admit(row, &it, &why), TN_UNSUPPORTED);
        assert_int_equal(why.code, TN_REFUSE_DTYPE);
        assert_string_equal(why.what, "out");
        assert_int_equal(why.needed, TN_F32);
        assert_int_equal(why.found, pairs[c][1]);
        assert_contains(why.text, "cast to");
        cpu_end(&it);
    }
}

static void casts_that_round_twice_are_refused(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_CAST, refused_casts_of);
}

typedef struct filled {
    tn_dtype dtype;
    double value;
    uint64_t bits;
} filled;

static void fill_of(const tn_kernel_row *row)
{
    static const filled cases[] = {{TN_I8, 300, 127},
                                   {TN_I8, -2.75, 0xfe},
                                   {TN_U8, -3, 0},
                                   {TN_I16, -2, 0xfffe},
                                   {TN_U16, 1e9, 0xffff},
                                   {TN_I32, 3.75, 3},
                                   {TN_U32, 4294967295.0, 0xffffffff},
                                   {TN_I64, -1, UINT64_MAX},
                                   {TN_I64, 1e19, INT64_MAX},
                                   {TN_U64, 1e20, UINT64_MAX},
                                   {TN_I32, NAN, 0},
                                   {TN_BOOL, 7, 1},
                                   {TN_F32, 1.5, 0x3fc00000},
                                   {TN_F64, -2, 0xc000000000000000},
                                   {TN_BF16, 1 + 0x1p-8 + 0x1p-40, 0x3f81},
                                   {TN_F16, 1 + 0x1p-11, 0x3c00},
                                   {TN_F16, 1 + 0x1p-11 + 0x1p-50, 0x3c01},
                                   {TN_F16, 1e300, 0x7c00}};
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {2, 65}, {3, 30011}};
    for (size_t c = 0; c < 18 * 4 * CPU_LIES; c++) {
        if (test_fewest() && !test_sampled(c, 4))
            continue;
        const filled *f = &cases[c % 18];
        cpu_case it = {.op = {.params = PARAMS(elementwise, .value = f->value)}};
        cpu_add_lying(&it, TN_ELEMENTWISE_OUT, f->dtype, 2, shapes[c / 18 % 4], (int)(c / 72),
                      c & 1);
        cpu_run(row, &it);
        for (int64_t i = 0; i < cpu_elements(&it.op.operand[TN_ELEMENTWISE_OUT]); i++)
            assert_memory_equal(cpu_at(&it, TN_ELEMENTWISE_OUT, i), &f->bits,
                                (size_t)cpu_size(f->dtype));
        cpu_check_gaps(&it, TN_ELEMENTWISE_OUT);
        cpu_end(&it);
    }
}

static void fill_complex_of(const tn_kernel_row *row)
{
    static const double values[] = {1.25, INFINITY}; /* the second is beyond every integer */
    int64_t shape[] = {19};
    for (int c = 0; c < 4; c++) {
        const double wide[] = {values[c / 2], -3};
        const float narrow[] = {(float)values[c / 2], -3};
        cpu_case it = {
            .op = {.params = PARAMS(elementwise, .value = values[c / 2], .imaginary = -3)}};
        cpu_add(&it, TN_ELEMENTWISE_OUT, c % 2 ? TN_C128 : TN_C64, 1, shape, NULL, 1);
        cpu_run(row, &it);
        for (int64_t i = 0; i < 19; i++)
            assert_memory_equal(cpu_at(&it, TN_ELEMENTWISE_OUT, i),
                                c % 2 ? (const void *)wide : narrow, c % 2 ? 16 : 8);
        cpu_end(&it);
    }
}

static void fill_writes_what_a_cast_would(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_FILL, fill_of);
    cpu_each_row(TN_OP_FILL, fill_complex_of);
}

static double function_of(int32_t kind, double x)
{
    double u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    switch (kind) {
    case TN_UNARY_NEG: return -x;
    case TN_UNARY_ABS: return fabs(x);
    case TN_UNARY_SQRT: return sqrt(x);
    case TN_UNARY_RSQRT: return 1 / sqrt(x);
    case TN_UNARY_EXP: return exp(x);
    case TN_UNARY_LOG: return log(x);
    case TN_UNARY_TANH: return tanh(x);
    case TN_UNARY_SIGMOID: return 1 / (1 + exp(-x));
    case TN_UNARY_RELU: return x < 0 ? 0 : x;
    case TN_UNARY_GELU: return x / 2 * erfc(-x * sqrt(0.5));
    case TN_UNARY_GELU_TANH: return x == -INFINITY ? NAN : x / (1 + exp(-2 * u));
    default: return x == -INFINITY ? NAN : x / (1 + exp(-x));
    }
}

/* Errors in units in the last place, as stated; f64's are those of the C library and a few roundings. */
static double ulps_of(int32_t kind, double x)
{
    static const double ulps[TN_UNARY_COUNT] = {0, 0, 0.51, 2, 1.1, 1.0, 1.5, 2.5, 0, 10, 4, 3.5};
    double u = fabs(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
    return 2 * ulps[kind] + (kind == TN_UNARY_GELU_TANH ? 12 * fmin(u, 60) : 0) +
           (kind >= TN_UNARY_SQRT && kind != TN_UNARY_RELU ? 2 : 0);
}

static void check_unary(const tn_kernel_row *row, const cpu_case *it, int64_t i, double x)
{
    tn_dtype dtype = it->op.operand[TN_ELEMENTWISE_IN].dtype,
             out = it->op.operand[TN_ELEMENTWISE_OUT].dtype;
    int32_t kind = TN_PARAMS(&it->op, elementwise)->kind;
    double wanted = function_of(kind, x), found = cpu_get(it, TN_ELEMENTWISE_OUT, i);
    double u = dtype == TN_F64 ? 0x1p-53 : 0x1p-24, tiny = dtype == TN_F64 ? 0x1p-1070 : 0x1p-149;
    double bound = ulps_of(kind, x) * u * fabs(wanted) + tiny * (2 + fabs(x));
    double greatest = out == TN_F16 ? 65504 : out == TN_F64 ? 1.7e308 : 3.38e38;
    bound += 1.01 * cpu_unit(out) * fabs(wanted) + (out == TN_F16    ? 0x1p-25
                                                    : out == TN_BF16 ? 0x1p-134
                                                                     : 0);
    if (fabs(wanted) > greatest && (isinf(found) || fabs(found) >= greatest * 0.99))
        return;
    if (!cpu_close(found, wanted, bound))
        fail_msg("%s: kind %d of %a (%#x) is %a, not %a +- %.3g", row->name, (int)kind, x,
                 (unsigned)dtype, found, wanted, bound);
}

static void unary_of(const tn_kernel_row *row)
{
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {3, 1500}};
    for (int c = 0; c < TN_UNARY_COUNT * 4 * 4 * CPU_LIES; c++) {
        if (test_fewest() && !test_sampled((uint64_t)c, 5))
            continue;
        tn_dtype in = reals[c / 12 % 4], out = c % 13 == 0 && in != TN_F64 ? TN_F32 : in;
        cpu_case it = {.op = {.params = PARAMS(elementwise, .kind = c % TN_UNARY_COUNT)}};
        cpu_add_lying(&it, TN_ELEMENTWISE_IN, in, 2, shapes[c / 48 % 4], c / 192, c & 1);
        fill_strangely(&it, TN_ELEMENTWISE_IN);
        int64_t count = cpu_elements(&it.op.operand[0]);
        double *x = malloc((size_t)count * sizeof *x);
        for (int64_t i = 0; i < count; i++)
            x[i] = cpu_get(&it, TN_ELEMENTWISE_IN, i);
        if (c % 5 == 2 && in == out)
            cpu_in_place(&it);
        else
            cpu_add_lying(&it, TN_ELEMENTWISE_OUT, out, 2, shapes[c / 48 % 4], c % CPU_LIES, c & 2);
        cpu_run(row, &it);
        for (int64_t i = 0; i < count; i++)
            check_unary(row, &it, i, x[i]);
        cpu_check_gaps(&it, TN_ELEMENTWISE_OUT);
        free(x);
        cpu_end(&it);
    }
}

static void functions_are_within_their_errors(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_UNARY, unary_of);
}

/* Floats of every exponent; all of them take a while. */
static void whole_range_of(const tn_kernel_row *row)
{
    enum { COUNT = 1 << 18 };
    int64_t shape[] = {COUNT};
    for (int32_t kind = 0; kind < TN_UNARY_COUNT; kind++) {
        if (test_fewest() && !test_sampled((uint64_t)kind, 4))
            continue;
        cpu_case it = {.op = {.params = PARAMS(elementwise, .kind = kind)}};
        cpu_add(&it, TN_ELEMENTWISE_IN, TN_F32, 1, shape, NULL, 0);
        cpu_add(&it, TN_ELEMENTWISE_OUT, TN_F32, 1, shape, NULL, 0);
        for (int64_t i = 0; i < COUNT; i++) {
            uint32_t bits = (uint32_t)i << 14 | (cpu_random() & 0x3fff);
            memcpy(cpu_at(&it, TN_ELEMENTWISE_IN, i), &bits, 4);
        }
        cpu_run(row, &it);
        for (int64_t i = 0; i < COUNT; i++)
            check_unary(row, &it, i, cpu_get(&it, TN_ELEMENTWISE_IN, i));
        cpu_end(&it);
    }
}

static void functions_hold_for_floats_of_every_size(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_UNARY, whole_range_of);
}

static double combined(int32_t kind, double a, double b)
{
    switch (kind) {
    case TN_BINARY_ADD: return a + b;
    case TN_BINARY_SUB: return a - b;
    case TN_BINARY_MUL: return a * b;
    case TN_BINARY_DIV: return a / b;
    case TN_BINARY_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    }
}

/* As a float of 32 bits where that is what is computed with, then as out. */
static double rounded(tn_dtype dtype, double x)
{
    return dtype == TN_F64 ? x : casted(dtype, (double)(float)x);
}

static void binary_of(const tn_kernel_row *row)
{
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {3, 1500}};
    if (!cpu_takes(row, reals[0]))
        return;
    for (int c = 0; c < 6 * 4 * 4 * CPU_LIES; c++) {
        if (test_fewest() && !test_sampled((uint64_t)c, 4))
            continue;
        tn_dtype dtype = reals[c / 6 % 4];
        const int64_t *shape = shapes[c / 24 % 4], strides[] = {c % 2, 1 - c % 2};
        cpu_case it = {.op = {.params = PARAMS(elementwise, .kind = c % 6)}};
        cpu_add_lying(&it, TN_ELEMENTWISE_IN, dtype, 2, shape, c / 96, c & 1);
        cpu_add_lying(&it, TN_ELEMENTWISE_OUT, dtype, 2, shape, c % CPU_LIES, c & 2);
        if (c % 7 < 3)
            cpu_add(&it, TN_ELEMENTWISE_OTHER, dtype, 2, shape, strides, 0);
        else
            cpu_add_lying(&it, TN_ELEMENTWISE_OTHER, dtype, 2, shape, c % 5, 1);
        it.op.uses |= TN_ELEMENTWISE_USES_BROADCAST;
        fill_strangely(&it, TN_ELEMENTWISE_IN);
        fill_strangely(&it, TN_ELEMENTWISE_OTHER);
        if (c % 7 == 6)
            cpu_put(&it, TN_ELEMENTWISE_OTHER, 0, NAN);
        cpu_run(row, &it);
        for (int64_t i = 0; i < cpu_elements(&it.op.operand[0]); i++) {
            double a = cpu_get(&it, TN_ELEMENTWISE_IN, i),
                   b = cpu_get(&it, TN_ELEMENTWISE_OTHER, i);
            double found = cpu_get(&it, TN_ELEMENTWISE_OUT, i), wanted = combined(c % 6, a, b);
            if (!cpu_close(found, rounded(dtype, wanted), 0))
                fail_msg("%s: kind %d of %a and %a (%#x) is %a, not %a", row->name, c % 6, a, b,
                         (unsigned)dtype, found, rounded(dtype, wanted));
        }
        cpu_check_gaps(&it, TN_ELEMENTWISE_OUT);
        cpu_end(&it);
    }
}

static void two_operands_make_one(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_BINARY, binary_of);
}

/* Of every bit pattern; on overflow, the lowest bits count. */
static void check_whole(const tn_kernel_row *row, cpu_case *it, int32_t kind, tn_dtype dtype)
{
    const size_t size = (size_t)cpu_size(dtype);
    const int64_t count = cpu_elements(&it->op.operand[TN_ELEMENTWISE_OUT]);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t a = (uint64_t)cpu_random() << 32 | cpu_random();
        memcpy(cpu_at(it, TN_ELEMENTWISE_IN, i), &a, size);
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t b = (uint64_t)cpu_random() << 32 | cpu_random();
        memcpy(cpu_at(it, TN_ELEMENTWISE_OTHER, i), &b, size);
    }
    cpu_run(row, it);
    for (int64_t i = 0; i < count; i++) {
        uint64_t a = 0, b = 0, found = 0;
        memcpy(&a, cpu_at(it, TN_ELEMENTWISE_IN, i), size);
        memcpy(&b, cpu_at(it, TN_ELEMENTWISE_OTHER, i), size);
        memcpy(&found, cpu_at(it, TN_ELEMENTWISE_OUT, i), size);
        const uint64_t all = kind == TN_BINARY_ADD ? a + b : kind == TN_BINARY_SUB ? a - b : a * b;
        if (found != (all & UINT64_MAX >> (64 - 8 * size)))
            fail_msg("%s: kind %d, dtype %#x, element %d is wrong", row->name, (int)kind,
                     (unsigned)dtype, (int)i);
    }
}

static double part_at(const cpu_case *it, int32_t operand, int64_t i, int part)
{
    const tn_dtype real = it->op.operand[operand].dtype == TN_C64 ? TN_F32 : TN_F64;
    return cpu_read(real, (const char *)cpu_at(it, operand, i) + part * cpu_size(real));
}

static void check_complex(const tn_kernel_row *row, cpu_case *it, int32_t kind, tn_dtype dtype)
{
    const tn_dtype real = dtype == TN_C64 ? TN_F32 : TN_F64;
    const int64_t count = cpu_elements(&it->op.operand[TN_ELEMENTWISE_OUT]);
    for (int32_t operand = TN_ELEMENTWISE_IN; operand <= TN_ELEMENTWISE_OTHER; operand++) {
        if (operand == TN_ELEMENTWISE_OUT)
            continue;
        for (int64_t i = 0; i < 2 * count; i++)
            cpu_write(real, (char *)cpu_at(it, operand, i / 2) + i % 2 * cpu_size(real),
                      cpu_uniform(-2, 2));
    }
    cpu_run(row, it);
    for (int64_t i = 0; i < 2 * count; i++) {
        double a[2], b[2];
        for (int part = 0; part < 2; part++) {
            a[part] = part_at(it, TN_ELEMENTWISE_IN, i / 2, part);
            b[part] = part_at(it, TN_ELEMENTWISE_OTHER, i / 2, part);
        }
        const double products[] = {a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]};
        const double wanted =
            kind == TN_BINARY_MUL ? products[i % 2] : combined(kind, a[i % 2], b[i % 2]);
        const double found = part_at(it, TN_ELEMENTWISE_OUT, i / 2, (int)(i % 2));
        if (!cpu_close(found, wanted, 16 * cpu_unit(real)))
            fail_msg("%s: kind %d, part %d is %a, not %a", row->name, (int)kind, (int)(i % 2),
                     found, wanted);
    }
}

static void numbers_of(const tn_kernel_row *row)
{
    static const tn_dtype dtypes[] = {TN_I8,  TN_U8,  TN_I16, TN_U16, TN_I32,
                                      TN_U32, TN_I64, TN_U64, TN_C64, TN_C128};
    static const int32_t kinds[] = {TN_BINARY_ADD, TN_BINARY_SUB, TN_BINARY_MUL};
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {3, 1500}};
    for (int c = 0; c < 10 * 3 * 4 * CPU_LIES; c++) {
        const tn_dtype dtype = dtypes[c % 10];
        if (!cpu_takes(row, dtype) || (test_fewest() && !test_sampled((uint64_t)c, 4)))
            continue;
        const int64_t *shape = shapes[c / 30 % 4];
        const int32_t kind = kinds[c / 10 % 3];
        cpu_case it = {.op = {.params = PARAMS(elementwise, .kind = kind)}};
        cpu_add_lying(&it, TN_ELEMENTWISE_IN, dtype, 2, shape, c / 120, c & 1);
        cpu_add_lying(&it, TN_ELEMENTWISE_OUT, dtype, 2, shape, c % CPU_LIES, c & 2);
        cpu_add_lying(&it, TN_ELEMENTWISE_OTHER, dtype, 2, shape, c % 5, 1);
        (c % 10 < 8 ? check_whole : check_complex)(row, &it, kind, dtype);
        cpu_check_gaps(&it, TN_ELEMENTWISE_OUT);
        cpu_end(&it);
    }
}

static void integers_and_complex_numbers(void **state)
{
    (void)state;
    cpu_each_row(TN_OP_BINARY, numbers_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permute_copies_whatever_the_strides),
        cmocka_unit_test(permute_turns_planes),
        cmocka_unit_test(casts_round_once),
        cmocka_unit_test(small_floats_come_back),
        cmocka_unit_test(middles_go_to_the_even_one),
        cmocka_unit_test(casts_that_round_twice_are_refused),
        cmocka_unit_test(fill_writes_what_a_cast_would),
        cmocka_unit_test(functions_are_within_their_errors),
        cmocka_unit_test(functions_hold_for_floats_of_every_size),
        cmocka_unit_test(two_operands_make_one),
        cmocka_unit_test(integers_and_complex_numbers),
    };
    return run_suite("kernels.cpu_each", tests);
}
