/* Checking: what a number stands for, how far it may be off, and that a kernel which does anything
 * wrong is found out, by whichever of the two. */
#include "test.h"

#include "scratch.h"

#include "base/alloc.h"
#include "base/form.h"
#include "check/check.h"
#include "check/compare.h"
#include "check/oracle.h"
#include "check/part.h"
#include "op/bounds.h"
#include "op/element.h"
#include "os/file.h"
#include "tenon/tenon.h"

#include <inttypes.h>
#include <math.h>

static tn_op op_of(const char *text)
{
    tn_op op;
    char device[8];
    tn_error err;
    if (tni_problem_parse(text, &op, device, sizeof device, &err))
        fail_msg("%s", err.message);
    return op;
}

/* Elements. */

static double number_of(tn_dtype dtype, uint32_t bits)
{
    return tni_element_read(dtype, &bits).re;
}

static uint32_t bits_of(tn_dtype dtype, double value)
{
    uint32_t bits = 0;
    tni_element_write(dtype, (tni_number){value, 0}, &bits);
    return bits;
}

static void narrow_floats_come_back_as_they_were(void **state)
{
    static const struct {
        tn_dtype dtype;
        uint32_t count;
    } formats[] = {{TN_F16, 65536},     {TN_BF16, 65536},      {TN_F8_E5M2, 256},
                   {TN_F8_E4M3FN, 256}, {TN_F8_E4M3FNUZ, 256}, {TN_F8_E5M2FNUZ, 256}};
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        for (uint32_t bits = 0; bits < formats[i].count; bits++) {
            double value = number_of(formats[i].dtype, bits);
            uint32_t again = bits_of(formats[i].dtype, value);
            if (isnan(value))
                assert_true(isnan(number_of(formats[i].dtype, again)));
            else
                assert_int_equal(again, bits);
        }
    }
}

static void numbers_are_rounded_to_nearest_even(void **state)
{
    static const struct {
        tn_dtype dtype;
        double value;
        uint32_t bits;
    } cases[] = {
        {TN_F16, 1, 0x3C00},
        {TN_F16, -2, 0xC000},
        {TN_F16, 65504, 0x7BFF},
        {TN_F16, 65519.99, 0x7BFF},
        {TN_F16, 65520, 0x7C00},
        {TN_F16, 1e300, 0x7C00},
        {TN_F16, 0x1p-24, 1},
        {TN_F16, 0x1p-25, 0},
        {TN_F16, 0x1.8p-24, 2},
        {TN_F16, 1 + 0x1p-11, 0x3C00},
        {TN_F16, 1 + 0x3p-11, 0x3C02},
        {TN_F16, -0.0, 0x8000},
        {TN_BF16, 1 + 0x1p-8, 0x3F80},
        {TN_BF16, 1 + 0x3p-8, 0x3F82},
        {TN_BF16, 0x1p-133, 1},
        {TN_F8_E4M3FN, 448, 0x7E},
        {TN_F8_E4M3FN, 1e9, 0x7E},
        {TN_F8_E4M3FNUZ, 240, 0x7F},
        {TN_F8_E4M3FNUZ, -0.0, 0},
        {TN_F8_E5M2, 57344, 0x7B},
        {TN_F8_E5M2, 65536, 0x7C},
        {TN_I8, 127.6, 127},
        {TN_I8, -1, 0xFF},
        {TN_U8, -5, 0},
        {TN_I32, 0x1p40, 0x7FFFFFFF},
        {TN_I32, NAN, 0},
        {TN_BOOL, 0.25, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(bits_of(cases[i].dtype, cases[i].value), cases[i].bits);
    assert_true(isinf(number_of(TN_F16, 0xFC00)) && number_of(TN_F16, 0xFC00) < 0);
    assert_true(isnan(number_of(TN_F8_E4M3FN, 0x7F)) && isnan(number_of(TN_F8_E4M3FNUZ, 0x80)));
}

/* Comparing. */

/* What comes of comparing one output of an f32 op that has one. */
static tni_difference compare_one(const char *problem, const void *in, const void *found,
                                  const void *expected)
{
    tn_op op = op_of(problem);
    float other[4] = {1, 1, 1, 1}, before = NAN;
    char input[16] = {0};
    memcpy(input, in, 8);
    void *data[TN_OP_OPERANDS_MAX] = {input, &before, other, other, NULL, NULL};
    tni_difference difference = {.at = -1};
    bool worse = false;
    const tni_comparand what = {.op = &op,
                                .output = tni_op_class_of(op.kind)->output,
                                .data = data,
                                .found = found,
                                .expected = expected};
    assert_int_equal(tni_compare(&what, &difference, &worse, NULL), TN_OK);
    assert_true(worse && difference.checked == 1 && difference.at == 0);
    return difference;
}

static bool f32_passes(const char *problem, float in, float found, float expected)
{
    double room = 0;
    memcpy(&room, &in, sizeof in);
    return compare_one(problem, &room, &found, &expected).wrong == 0;
}

static void numbers_are_within_their_bounds(void **state)
{
    const float one = 1, up = nextafterf(1, 2);
    (void)state;
    assert_true(f32_passes("unary:f32:kind=exp,shape=1", 0, up, one));
    assert_true(f32_passes("unary:f32:kind=exp,shape=1", 0, one + 8 * 0x1p-23F, one) == false);
    assert_false(f32_passes("unary:f32:kind=neg,shape=1", -1, up, one));
    assert_false(f32_passes("binary:f32:kind=add,shape=1", 0, up, one));
    assert_true(f32_passes("binary:f32:kind=div,shape=1", 1, up, one));
    assert_false(f32_passes("binary:f32:kind=max,shape=1", 1, up, one));
    assert_true(f32_passes("softmax:f32:shape=1", 3, up, one));
    assert_false(f32_passes("softmax:f32:shape=1", 3, one + 0x1p-16F, one));
    assert_true(f32_passes("unary:f32:kind=gelu,shape=1", -4, -1e-4F, -1.005e-4F));
    assert_false(f32_passes("unary:f32:kind=gelu,shape=1", -4, -1e-4F, -1.2e-4F));
}

static void nans_and_infinities_meet_their_like(void **state)
{
    static const char problem[] = "unary:f32:kind=exp,shape=1";
    const float inf = INFINITY, nan_ = NAN;
    (void)state;
    assert_true(f32_passes(problem, 1, nan_, nan_));
    assert_true(f32_passes(problem, 1, -nan_, nan_));
    assert_true(f32_passes(problem, 1, inf, inf));
    assert_false(f32_passes(problem, 1, -inf, inf));
    assert_false(f32_passes(problem, 1, 3e38F, inf));
    assert_false(f32_passes(problem, 1, inf, 3e38F));
    assert_false(f32_passes(problem, 1, nan_, 1));
    assert_false(f32_passes(problem, 1, 1, nan_));
    assert_false(f32_passes(problem, 1, nan_, inf));
    assert_true(f32_passes("unary:f32:kind=neg,shape=1", 0, -0.0F, 0));
    assert_false(f32_passes("permute:f32:shape=1", 0, -0.0F, 0));
}

/* Where a double has not bits enough. */
static void wide_integers_are_compared_whole(void **state)
{
    const int64_t in = 1, great = (INT64_C(1) << 60) + 1, less = INT64_C(1) << 60;
    (void)state;
    assert_true((double)great == (double)less);
    assert_int_equal(compare_one("binary:i64:kind=add,shape=1", &in, &great, &less).wrong, 1);
    assert_int_equal(compare_one("binary:i64:kind=add,shape=1", &in, &great, &great).wrong, 0);
}

/* The formula of bounds.h, of 1 x n times n x 1 with ones, and scales of 2. */
static double bound_of_ones(const char *problem, uint64_t numerics, int64_t k)
{
    tn_op op = op_of(problem);
    const tn_dtype dtype = op.operand[0].dtype;
    const int64_t bytes = tni_dtype_bytes(dtype);
    float out = 0, two = 2;
    char *ones = tni_alloc((size_t)(k * bytes));
    assert_non_null(ones);
    for (int64_t i = 0; i < k; i++)
        tni_element_write(dtype, (tni_number){1, 0}, ones + i * bytes);
    void *data[TN_OP_OPERANDS_MAX] = {ones, ones, &out, &out, &two, &two};
    const tni_place first = {{0}};
    tni_bounds bounds = {
        .op = &op, .output = tni_op_class_of(op.kind)->output, .data = data, .numerics = numerics};
    assert_int_equal(tni_bounds_init(&bounds, NULL), TN_OK);
    double bound = tni_bounds_at(&bounds, &first, (tni_number){(double)k, 0});
    tni_bounds_release(&bounds);
    tni_release(ones);
    return bound;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static void bounds_follow_the_length_of_sums(void **state)
{
    const double u = 0x1p-24;
    (void)state;
    assert_true(is_near(bound_of_ones("matmul:f32:m=1,n=1,k=16", 0, 16),
                        (32 + 8) * u * 16 + 4 * u * 16 + 2 * u * 16));
    assert_true(is_near(bound_of_ones("matmul:f32:m=1,n=1,k=10000", 0, 10000),
                        (1600 + 8) * u * 1e4 + 6 * u * 1e4));
    double tf32 = bound_of_ones("matmul:f32:m=1,n=1,k=16", TN_NUM_ROUNDS_F32_TF32, 16);
    double bf16 = bound_of_ones("matmul:f32:m=1,n=1,k=16", TN_NUM_ROUNDS_F32_BF16, 16);
    assert_true(is_near(tf32, 46 * u * 16 + 4 * 0x1p-11 * 16));
    assert_true(is_near(bf16, 46 * u * 16 + 4 * 0x1p-8 * 16));
    const double f16 = 46 * 0x1p-11 * 16, f8 = 44 * 0x1p-13 * 16, last = 2 * u * 16;
    const uint64_t reduced = TN_NUM_REDUCED_REDUCTION, f16_sums = TN_NUM_F16_SUMS;
    assert_true(is_near(bound_of_ones("matmul:f16:m=1,n=1,k=16", reduced, 16), f16 + 0x1p-24));
    assert_true(is_near(bound_of_ones("matmul:f16:m=1,n=1,k=16", f16_sums, 16), f16 + 0x1p-24));
    assert_true(is_near(bound_of_ones("matmul:f8_e4m3fn:m=1,n=1,k=16", 0, 16), 46 * u * 16));
    assert_true(is_near(bound_of_ones("matmul:f8_e4m3fn:m=1,n=1,k=16", reduced, 16), f8 + last));
    assert_true(
        is_near(bound_of_ones("matmul:f8_e4m3fn:m=1,n=1,k=16,scale_a=tensor,scale_b=tensor", 0, 16),
                (4 * 40 + 4 + 2) * u * 16));
    assert_true(bound_of_ones("matmul:f32:m=1,n=1,k=16,acc=f64", 0, 16) <
                bound_of_ones("matmul:f32:m=1,n=1,k=16", 0, 16));
}

/* One roundoff of out's dtype more, and only where something is added to the product. */
static void bounds_have_room_for_a_rounded_product(void **state)
{
    static const struct {
        const char *problem;
        double more;
    } cases[] = {{"matmul:bf16:m=1,n=1,k=16", 0},
                 {"matmul:bf16:m=1,n=1,k=16,act=relu", 0},
                 {"matmul:bf16:m=1,n=1,k=16,bias=1", 0x1p-8},
                 {"matmul:f16:m=1,n=1,k=16,bias=1", 0x1p-11},
                 {"matmul:bf16:m=1,n=1,k=16,beta=1", 0x1p-8},
                 {"matmul:bf16:m=1,n=1,k=16,alpha=-3,beta=1", 3 * 0x1p-8},
                 {"matmul:bf16:m=1,n=1,k=16,bias=1,out=f32", 0x1p-24}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double once = bound_of_ones(cases[i].problem, 0, 16);
        const double twice = bound_of_ones(cases[i].problem, TN_NUM_ROUNDS_PRODUCT, 16);
        assert_true(fabs(twice - once - 16 * cases[i].more) <= 1e-9 * once);
    }
}

/* Of the first output, which is `expected`. */
static double bound_of(const char *problem, float *in, float *other, double expected)
{
    tn_op op = op_of(problem);
    float out[4] = {0};
    void *data[TN_OP_OPERANDS_MAX] = {in, out, other, other + 1};
    const tni_place first = {{0}};
    tni_bounds bounds = {.op = &op, .output = tni_op_class_of(op.kind)->output, .data = data};
    assert_int_equal(tni_bounds_init(&bounds, NULL), TN_OK);
    double bound = tni_bounds_at(&bounds, &first, (tni_number){expected, 0});
    tni_bounds_release(&bounds);
    return bound;
}

static void bounds_follow_the_inputs(void **state)
{
    const double u = 0x1p-24;
    float in[] = {3, -4, 1}, other[] = {0.5F, 0.25F, 2};
    (void)state;
    assert_true(is_near(bound_of("rotary:f32:kind=pairs,shape=2", in, other, 2.5),
                        4 * u * 7 * 0.5 + 2 * u * 2.5));
    assert_true(is_near(bound_of("rotary:f32:kind=halves,shape=2", in, other, 2.5),
                        4 * u * 7 * 0.5 + 2 * u * 2.5));
    assert_true(is_near(bound_of("reduce:f32:kind=sum,shape=3,axes=1", in, other, 0), 6 * u * 8));
    assert_true(
        is_near(bound_of("reduce:f32:kind=mean,shape=3,axes=1", in, other, 0), 6 * u * 8 / 3));
    assert_true(is_near(bound_of("reduce:f32:kind=prod,shape=3,axes=1", in, other, -12),
                        2 * 6 * u * 12 + 2 * u * 12));
    assert_true(bound_of("reduce:f32:kind=max,shape=3,axes=1", in, other, 3) == 0);
    assert_true(is_near(bound_of("softmax:f32:shape=3,log=1", in, other, -2),
                        (32 + 6 + 16) * u * 3 + 2 * u * 2));
    /* squares of 3 and -4: their mean is 12.5, the variance 12.25 */
    double r = sqrt(12.5), rms = sqrt(12.5 + 1e-5), layer = sqrt(12.25 + 1e-5);
    assert_true(is_near(bound_of("norm:f32:kind=rms,shape=2,weight=1", in, other, 0.4),
                        20 * u * (r + 3) / rms * (1 + 12.5 / (rms * rms)) * 0.5 + 6 * u * 0.4));
    assert_true(is_near(bound_of("norm:f32:kind=layer,shape=2,weight=1,bias=1", in, other, 0.4),
                        20 * u * (r + 3) / layer * (1 + 12.5 / (layer * layer)) * 0.5 +
                            4 * u * (0.4 + 0.25) + 2 * u * 0.4));
}

/* Parts. */

typedef struct tour {
    tn_op op;
    void *data[TN_OP_OPERANDS_MAX];
    const float *all; /* every output */
    tni_oracle oracle;
    int64_t visits;
    bool seen[512]; /* outputs that were in some part */
} tour;

static tn_status visit(void *user, const tni_part *part, tn_error *err)
{
    tour *t = user;
    void *data[TN_OP_OPERANDS_MAX];
    float out[512];
    int32_t output = tni_op_class_of(t->op.kind)->output;
    void *outs[TN_OP_OPERANDS_MAX] = {NULL};
    tn_op piece;
    outs[output] = out;
    tn_status status = tni_part_extract(&t->op, t->data, part, &piece, data, err);
    if (!status)
        status = tni_oracle_compute(&t->oracle, &piece, data, outs, err);
    int64_t count = tni_layout_elements(&piece.operand[output]);
    for (int64_t i = 0; i < count && !status; i++) {
        int64_t at = tni_part_place(&t->op, part, output, i);
        assert_in_range(at, 0, 511);
        t->seen[at] = true;
        assert_true(out[i] == t->all[at]);
    }
    t->visits++;
    return status;
}

/* Every part of a problem gives the outputs that the whole gives there. */
static void check_parts(const char *problem, int64_t least_visits)
{
    tour t = {.op = op_of(problem)};
    static float inputs[TN_MATMUL_OPERANDS][4096], all[512];
    void *outs[TN_OP_OPERANDS_MAX] = {NULL};
    tn_error err;
    for (int32_t i = 0; i < t.op.count; i++) {
        for (int32_t k = 0; k < 4096; k++)
            inputs[i][k] = (float)((k * 37 + i * 11) % 101) / 50 - 1;
        t.data[i] = t.op.operand[i].dtype ? inputs[i] : NULL;
    }
    outs[tni_op_class_of(t.op.kind)->output] = all;
    if (tni_oracle_init(&t.oracle, t.op.kind, &err) ||
        tni_oracle_compute(&t.oracle, &t.op, t.data, outs, &err))
        fail_msg("%s", err.message);
    t.all = all;
    assert_int_equal(tni_parts_visit(&t.op, false, 7, visit, &t, &err), TN_OK);
    assert_int_equal(t.visits, 1);
    memset(t.seen, 0, sizeof t.seen);
    if (tni_parts_visit(&t.op, true, 7, visit, &t, &err))
        fail_msg("%s", err.message);
    assert_true(t.visits > least_visits);
    const tn_layout *out = &t.op.operand[tni_op_class_of(t.op.kind)->output];
    for (int64_t i = 0; i < tni_layout_elements(out); i++)
        assert_true(t.seen[i]);
    tni_oracle_release(&t.oracle);
}

static void parts_give_what_the_whole_gives(void **state)
{
    (void)state;
    check_parts("matmul:f32:m=5,n=7,k=3", 4096 + 4);
    check_parts("matmul:f32:m=5,n=7,k=3,batch=2x3,ta=1,sb=0;21;7;1,bias=1,beta=0.5,alpha=2", 4096);
    check_parts("matmul:f32:m=9,n=11,k=13,sa=39;3,sb=22;2,sc=33;3", 4096);
    check_parts("unary:f32:kind=neg,shape=5x7,si=21;3", 4096);
    check_parts("binary:f32:kind=add,shape=3x4x5,s2=0;5;1", 4096);
    check_parts("reduce:f32:kind=sum,shape=6x5x7,axes=1", 4096);
    check_parts("softmax:f32:shape=6x5", 800);
    check_parts("norm:f32:kind=layer,shape=6x5,weight=1,bias=1", 800);
    check_parts("rotary:f32:kind=halves,shape=4x6x8,size=6", 500);
    check_parts("permute:f32:shape=5x7,order=1;0", 4096);
}

/* Kernels that do something wrong. */

enum {
    HONEST,
    OFF_BY_ONE,
    WRITES_NOTHING,
    BEFORE,
    BEHIND,
    IN_A_GAP,
    INTO_AN_INPUT,
    READS_OUT,
    FAILS,
    DIFFERS_AGAIN,   /* by one unit in the last place */
    FAILS_AGAIN,     /* if it is not the first run on its inputs */
    KEEPS_WORKSPACE, /* needs what the run before left in its workspace */
    BEYOND_WORKSPACE,
    TRICKS
};
static int trick;
static int runs; /* since the trick was chosen */
enum { WORKSPACE = 56 };

static tn_status run_trick(const tn_run *run, tn_error *err)
{
    const tn_op *op = run->op;
    const tn_matmul_op *mm = TN_PARAMS(op, matmul);
    const tn_layout *l = op->operand;
    float *a = tn_operand(run, TN_MATMUL_A), *b = tn_operand(run, TN_MATMUL_B);
    float *c = tn_operand(run, TN_MATMUL_OUT);
    const int again = runs++ > 0;
    unsigned char *workspace = run->workspace;
    if (trick == FAILS || (trick == FAILS_AGAIN && again))
        return tn_fail(err, TN_BUSY, 0, "trick", "not today");
    for (int64_t i = 0; i < mm->m && trick != WRITES_NOTHING; i++) {
        for (int64_t j = 0; j < mm->n; j++) {
            float *to = &c[i * l[2].stride[0] + j * l[2].stride[1]], sum = 0;
            for (int64_t k = 0; k < mm->k; k++)
                sum += a[i * l[0].stride[0] + k * l[0].stride[1]] *
                       b[k * l[1].stride[0] + j * l[1].stride[1]];
            *to = trick == READS_OUT ? sum + 0 * *to : sum;
        }
    }
    unsigned char *bytes = (unsigned char *)c;
    int64_t end = ((mm->m - 1) * l[2].stride[0] + (mm->n - 1) * l[2].stride[1] + 1) * 4;
    c[0] += trick == OFF_BY_ONE;
    if (trick == DIFFERS_AGAIN && again)
        c[0] = nextafterf(c[0], 1e9F);
    if (trick == KEEPS_WORKSPACE && again && workspace[0] != 0x5A)
        c[0] = nextafterf(c[0], 1e9F);
    workspace[0] = 0x5A;
    if (trick == BEYOND_WORKSPACE)
        workspace[WORKSPACE] ^= 1;
    if (trick == BEFORE)
        bytes[-1] ^= 1;
    if (trick == BEHIND)
        bytes[end] ^= 1;
    if (trick == IN_A_GAP)
        bytes[4 * mm->n] ^= 1;
    if (trick == INTO_AN_INPUT)
        ((unsigned char *)b)[3] ^= 1;
    return TN_OK;
}

static uint64_t workspace_of_trick(const tn_kernel_row *row, const tn_query *query)
{
    (void)row, (void)query;
    return WORKSPACE;
}

#define TRICK_ROW(word, kernel, promises, bits)                           \
    static const tn_kernel_row word = {                                   \
        .struct_size = sizeof word,                                       \
        .name = kernel,                                                   \
        .platform = "cpu",                                                \
        .op = TN_OP_MATMUL,                                               \
        .version = 1,                                                     \
        .dtypes = only_f32,                                               \
        .numerics = promises,                                             \
        .honours = TN_MATMUL_USES_STRIDES | TN_MATMUL_USES_TRANSPOSE,     \
        .free_dims = TN_MATMUL_DIM_M | TN_MATMUL_DIM_N | TN_MATMUL_DIM_K, \
        .flops_per_us = 1,                                                \
        .bytes_per_us = 1,                                                \
        .overhead_us = 1000,                                              \
        .workspace = workspace_of_trick,                                  \
        .run = run_trick,                                                 \
        .traits = bits,                                                   \
    }

static const tn_dtype only_f32[] = {TN_F32, TN_DTYPE_NONE};
TRICK_ROW(trick_row, "cpu.matmul.trick", TN_NUM_RUN_TO_RUN, 0);
TRICK_ROW(changing_row, "cpu.matmul.changing", 0, 0);
TRICK_ROW(apart_row, "cpu.matmul.apart", TN_NUM_RUN_TO_RUN, TN_ROW_NO_GRAPHS);
static const tn_kernel_row *const trick_rows[] = {&trick_row, &changing_row, &apart_row, NULL};
static const tn_module trick_module = {.struct_size = sizeof trick_module,
                                       TN_MODULE_ABI,
                                       .name = "trick",
                                       .version = "1.0",
                                       .kernels = trick_rows};

static tn_status trick_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &trick_module;
    return TN_OK;
}

static void bring_trick(void)
{
    static tn_registration *registration;
    tn_error err;
    if (!registration && tn_module_register(trick_entry, 0, &registration, &err))
        fail_msg("%s", err.message);
}

static tn_check_result check_kernel(const char *kernel, int which, const char *problem)
{
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err;
    bring_trick();
    trick = which;
    runs = 0;
    if (tn_check(NULL, TN_ARGS(check, .problem = problem, .kernel = kernel), &result, &err))
        fail_msg("%s: %s", err.where, err.message);
    return result;
}

static tn_check_result check(int which, const char *problem)
{
    return check_kernel("cpu.matmul.trick", which, problem);
}

static void honest_kernel_passes(void **state)
{
    (void)state;
    tn_check_result r = check(HONEST, "matmul:f32:m=17,n=13,k=31,sc=20;1@cpu:0");
    assert_true(r.ok == 1 && r.sampled == 0 && r.text[0] == '\0');
    assert_int_equal(r.checked, 17 * 13);
    assert_true(r.error > 0 && r.error < 1 && r.bound > 0);
    assert_string_equal(r.kernel, "cpu.matmul.trick");
    assert_true(r.seed != 0 && r.struct_size == sizeof r);
}

/* The sequence of each row is found without a look at all others, which would take longer than the time limit of a
 * suite: 10.6 s for 64,000 sequences were measured. Empty ones are among them. */
static void many_packed_sequences_are_checked(void **state)
{
    const int count = test_reduced() ? 25000 : 500000;
    char problem[128];
    tn_check_result r = {.struct_size = sizeof r};
    tn_error err;
    (void)state;
    snprintf(problem, sizeof problem,
             "attention:f32:h=1,varlen=%dx1;1000x0;3;%dx1;0,d=1,lse=1@cpu:0", count, count);
    if (tn_check(NULL, TN_ARGS(check, .problem = problem, .seed = 1), &r, &err))
        fail_msg("%s: %s", err.where, err.message);
    if (!r.ok)
        fail_msg("%s", r.text);
    assert_int_equal(r.sampled, 0);
    assert_int_equal(r.checked, 2 * (2 * count + 3));
}

static void wrong_numbers_are_found(void **state)
{
    (void)state;
    tn_check_result r = check(OFF_BY_ONE, "matmul:f32:m=17,n=13,k=31@cpu:0");
    assert_int_equal(r.ok, 0);
    assert_int_equal(r.at, 0);
    assert_true(r.error > 1 && fabs(r.found - r.expected - 1) < 1e-3);
    assert_contains(r.text, "output 0 is ");
    assert_contains(r.text, "1 of 221 are wrong");
    assert_contains(check(WRITES_NOTHING, "matmul:f32:m=3,n=5,k=7@cpu:0").text,
                    "15 of 15 are wrong");
    assert_contains(check(READS_OUT, "matmul:f32:m=3,n=5,k=7@cpu:0").text, "15 of 15 are wrong");
}

static void bytes_that_are_no_outputs_stay_as_they_are(void **state)
{
    static const struct {
        int trick;
        const char *words;
    } cases[] = {{BEFORE, "-1 from the first byte of out"},
                 {BEHIND, "180 from the first byte of out"},
                 {IN_A_GAP, "20 from the first byte of out"},
                 {INTO_AN_INPUT, "3 from the first byte of b"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_check_result r = check(cases[i].trick, "matmul:f32:m=5,n=5,k=2,sc=10;1@cpu:0");
        assert_int_equal(r.ok, 0);
        assert_contains(r.text, cases[i].words);
        assert_true(r.error <= 1);
    }
}

static void declarations_are_checked(void **state)
{
    static const char problem[] = "matmul:f32:m=5,n=5,k=2@cpu:0";
    (void)state;
    tn_check_result r = check(DIFFERS_AGAIN, problem);
    assert_int_equal(r.ok, 0);
    assert_contains(r.text, "output 0 is ");
    assert_contains(r.text, "TN_NUM_RUN_TO_RUN");
    assert_contains(check(KEEPS_WORKSPACE, problem).text, "TN_NUM_RUN_TO_RUN");
    assert_int_equal(check_kernel("cpu.matmul.changing", DIFFERS_AGAIN, problem).ok, 1);
    assert_contains(check(BEYOND_WORKSPACE, problem).text,
                    "byte 56 of the workspace was written, which has 56");
    assert_contains(check(FAILS_AGAIN, problem).text,
                    "the second run, recorded into a graph (TN_ROW_NO_GRAPHS forbids that), fails "
                    "with busy: ");
    assert_contains(check_kernel("cpu.matmul.apart", FAILS_AGAIN, problem).text,
                    "the second run fails with busy: ");
    assert_int_equal(check_kernel("cpu.matmul.apart", HONEST, problem).ok, 1);
}

/* A kernel with TN_ROW_NO_GRAPHS runs, but is not recorded. */
static void some_kernels_are_not_recorded(void **state)
{
    static const int64_t shape[] = {5, 5};
    tn_tensor a = {0}, out = {0};
    tn_device *cpu = NULL;
    tn_stream *stream = NULL;
    tn_scope scope = {0};
    tn_error err = {0};
    (void)state;
    bring_trick();
    trick = HONEST;
    if (tn_device_get("cpu:0", &cpu, &err) || tn_stream_create(cpu, NULL, &stream, &err) ||
        tn_tensor_create(cpu, TN_F32, shape, 2, &a, &err) ||
        tn_tensor_create(cpu, TN_F32, shape, 2, &out, &err) || tn_random_normal(NULL, &a, &err) ||
        tn_scope_enter(&scope, TN_CHANGES(tn_with_rules(TN_REQUIRE, "cpu.matmul.apart")), &err))
        fail_msg("%s: %s", err.where, err.message);
    const tn_matmul_args *args = TN_ARGS(matmul, .a = &a, .b = &a, .out = &out, .stream = stream);
    for (int i = 0; i < 2; i++) { /* also when the call is remembered */
        assert_int_equal(tn_matmul(NULL, args, &err), TN_OK);
        assert_int_equal(tn_graph_begin(stream, &err), TN_OK);
        assert_int_equal(tn_matmul(NULL, args, &err), TN_UNSUPPORTED);
        assert_contains(err.message, "cpu.matmul.apart cannot be recorded; ");
        tn_graph_cancel(stream);
    }
    tn_scope_leave(&scope);
    tn_tensor_release(&a);
    tn_tensor_release(&out);
    tn_stream_release(stream);
}

static void same_seed_gives_the_same_inputs(void **state)
{
    tn_check_result a = {.struct_size = sizeof a}, b = a, c = a;
    static const char problem[] = "matmul:f32:m=3,n=5,k=7@cpu:0";
    (void)state;
    trick = OFF_BY_ONE;
    bring_trick();
    const char *kernel = "cpu.matmul.trick";
    assert_int_equal(
        tn_check(NULL, TN_ARGS(check, .problem = problem, .kernel = kernel, .seed = 5), &a, NULL),
        TN_OK);
    assert_int_equal(
        tn_check(NULL, TN_ARGS(check, .problem = problem, .kernel = kernel, .seed = 5), &b, NULL),
        TN_OK);
    assert_int_equal(tn_check(NULL, TN_ARGS(check, .problem = problem, .kernel = kernel), &c, NULL),
                     TN_OK);
    assert_true(a.found == b.found && a.seed == 5 && c.seed != 5 && c.found != a.found);
}

/* How many of 32 runs expect NaN or an infinity as the sum of 64 inputs. */
static int count_nonfinite(tn_check_args args)
{
    int count = 0;
    for (args.seed = 1; args.seed <= 32; args.seed++) {
        tn_check_result result = {.struct_size = sizeof result};
        assert_int_equal(tn_check(NULL, &args, &result, NULL), TN_OK);
        assert_int_equal(result.ok, 1);
        count += !isfinite(result.expected);
    }
    return count;
}

static void nonfinite_inputs_are_made_on_request(void **state)
{
    tn_check_result result = {.struct_size = sizeof result};
    tn_check_args args = {.struct_size = sizeof args,
                          .problem = "reduce:f32:kind=sum,shape=64,axes=1@cpu:0",
                          .kernel = "cpu.reduce.ref"};
    tn_error err;
    (void)state;
    assert_int_equal(count_nonfinite(args), 0);
    args.flags = TN_CHECK_NONFINITE;
    assert_in_range(count_nonfinite(args), 4, 28);
    args.flags = 6;
    assert_int_equal(tn_check(NULL, &args, &result, &err), TN_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "got 0x6"));
    args.struct_size = TN_UP_TO(tn_check_args, dump);
    assert_int_equal(count_nonfinite(args), 0);
}

/* Checks each problem with five seeds. */
static void expect_right(const char *const *problems, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (int again = 0; again < 5; again++) {
            tn_check_result result = {.struct_size = sizeof result};
            tn_error err;
            if (tn_check(NULL, TN_ARGS(check, .problem = problems[i]), &result, &err))
                fail_msg("%s: %s", problems[i], err.message);
            if (!result.ok)
                fail_msg("%s, seed %" PRIu64 ": %s", problems[i], result.seed, result.text);
        }
    }
}

/* Their weights come from a forward pass: of a made-up one they would be infinite at such scales. */
static void gradients_come_from_a_forward_pass(void **state)
{
    static const char *const problems[] = {
        "attention-backward:f32:b=1,h=2,l=65,d=64,scale=60@cpu",
        "attention-backward:f32:b=1,h=2,l=65,d=64,scale=1000,mask=causal@cpu",
        "attention-backward:bf16:b=1,h=2,lq=33,lk=65,d=64,scale=30@cpu",
        "attention-backward:f64:b=2,h=2,l=17,d=24,scale=300,mask=bool@cpu"};
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (!test_fewest() || i % 2 == test_seed() % 2)
            expect_right(&problems[i], 1);
    }
}

/* Rows that are in no packed sequence keep what was in them, by the kernel and by the reference. */
static void rows_of_no_sequence_are_left(void **state)
{
    static const char *const problems[] = {
        "attention:f32:h=2,varlen=1x6,rows=8,d=16,lse=1@cpu",
        "attention:f64:h=2,varlen=3x2,rows=20,varlenk=3x9,rowsk=40,d=16,mask=causal-br,lse=1@cpu",
        "attention:bf16:h=2,varlen=3x2,rows=20,d=16,page=4,lk=30@cpu"};
    (void)state;
    expect_right(problems, sizeof problems / sizeof problems[0]);
}

static void what_cannot_be_checked_says_why(void **state)
{
    static const struct {
        const char *problem, *kernel;
        tn_status status;
        const char *words;
    } cases[] = {
        {"matmul:f32:m=3,n=5,k=7@cpu:0", "cpu.matmul.rev", TN_NOT_FOUND, "cpu.matmul.ref"},
        {"matmul:f32:m=3,n=5,k=7@cpu:0", "cpu.softmax.ref", TN_UNSUPPORTED,
         "computes softmax, not matmul"},
        {"matmul:f64:m=3,n=5,k=7@cpu:0", "cpu.matmul.trick", TN_UNSUPPORTED, "f64"},
        {"matmul:f32:m=3,n=5@cpu:0", NULL, TN_INVALID_ARGUMENT, "k"},
        {"matmul:f32:m=100000000,n=100000000,k=1@cpu:0", NULL, TN_OUT_OF_MEMORY, "are available"},
    };
    tn_check_result result = {.struct_size = sizeof result, .at = 77};
    tn_error err;
    (void)state;
    bring_trick();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_status status =
            tn_check(NULL, TN_ARGS(check, .problem = cases[i].problem, .kernel = cases[i].kernel),
                     &result, &err);
        assert_int_equal(status, cases[i].status);
        assert_contains(err.message, cases[i].words);
    }
    trick = FAILS;
    assert_int_equal(tn_check(NULL,
                              TN_ARGS(check, .problem = "matmul:f32:m=3,n=5,k=7@cpu:0",
                                      .kernel = "cpu.matmul.trick"),
                              &result, &err),
                     TN_BUSY);
    assert_contains(err.message, "not today");
    assert_int_equal(tn_check(NULL, NULL, &result, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_check(NULL, TN_ARGS(check, .problem = "x"), NULL, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(result.at, 77); /* untouched by all of them */
}

static void mismatch_is_written_down(void **state)
{
    char folder[SCRATCH_PATH], path[SCRATCH_PATH + 16], *text = NULL;
    tn_check_result result = {.struct_size = sizeof result};
    tni_form *form = NULL;
    tn_error err;
    size_t size;
    (void)state;
    bring_trick();
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/dump", folder);
    const tn_check_args args = {.struct_size = sizeof args,
                                .problem = "matmul:f32:m=2,n=3,k=1@cpu:0",
                                .kernel = "cpu.matmul.trick",
                                .seed = 11,
                                .dump = path};
    trick = HONEST;
    assert_int_equal(tn_check(NULL, &args, &result, &err), TN_OK);
    assert_int_equal(tni_file_read(path, 1 << 20, &text, &size, &err), TN_NOT_FOUND);
    trick = OFF_BY_ONE;
    assert_int_equal(tn_check(NULL, &args, &result, &err), TN_OK);
    assert_int_equal(tni_file_read(path, 1 << 20, &text, &size, &err), TN_OK);
    assert_int_equal(tni_form_parse(text, size, "dump", &form, &err), TN_OK);
    assert_string_equal(tni_form_find(form, "", "problem"), "matmul:f32:m=2,n=3,k=1@cpu:0");
    assert_string_equal(tni_form_find(form, "", "seed"), "11");
    assert_string_equal(tni_form_find(form, "out", "shape"), "2 3");
    char first[64];
    snprintf(first, sizeof first, "%a\n", result.found);
    assert_true(strncmp(tni_form_find(form, "found", "values"), first, strlen(first)) == 0);
    snprintf(first, sizeof first, "%a\n", result.expected);
    assert_true(strncmp(tni_form_find(form, "expected", "values"), first, strlen(first)) == 0);
    assert_non_null(tni_form_find(form, "a", "values"));
    tni_form_release(form);
    tni_release(text);
    scratch_remove(folder);
}

/* Too large to be looked at whole: what is wrong at an edge is found all the same. */
static void large_problems_are_sampled(void **state)
{
    static const char problem[] = "matmul:f32:m=1024,n=1024,k=1024@cpu:0";
    tn_check_result result = {.struct_size = sizeof result};
    tn_error err;
    (void)state;
    tn_status status = tn_check(
        NULL, TN_ARGS(check, .problem = problem, .kernel = "cpu.matmul.openblas"), &result, &err);
    if (status == TN_UNSUPPORTED || status == TN_REFUSED || status == TN_UNAVAILABLE)
        skip_because("%s", err.message);
    assert_int_equal(status, TN_OK);
    assert_true(result.ok == 1 && result.sampled == 1);
    assert_int_equal(result.checked, 4 + 4 * 1024 + 4096);
}

static void kernels_are_timed(void **state)
{
    tn_bench_result result = {.struct_size = sizeof result};
    tn_error err;
    (void)state;
    bring_trick();
    trick = HONEST;
    tn_bench_args args = {.struct_size = sizeof args,
                          .problem = "matmul:f32:m=16,n=16,k=16@cpu:0",
                          .kernel = "cpu.matmul.trick",
                          .against = "cpu.matmul.ref",
                          .seconds = 0.02};
    if (tn_bench(NULL, &args, &result, &err))
        fail_msg("%s", err.message);
    assert_string_equal(result.kernel, "cpu.matmul.trick");
    assert_true(result.runs >= 15 && result.calls >= 1);
    assert_true(result.us > 0 && result.against_us > 0 && result.ratio > 0 && result.spread >= 0);
    assert_true(is_near(result.gflops, 2 * 16 * 16 * 16 / (result.us * 1e3)));
    assert_true(result.gbps > 0 && result.aa_spread >= 0);
    args.against = NULL;
    assert_int_equal(tn_bench(NULL, &args, &result, &err), TN_OK);
    assert_true(result.against_us == 0 && result.ratio == 0);
    args.against = "cpu.softmax.ref";
    assert_int_equal(tn_bench(NULL, &args, &result, &err), TN_UNSUPPORTED);
    args.seconds = -1;
    assert_int_equal(tn_bench(NULL, &args, &result, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "seconds: expected 0 to 3600, got -1");
    trick = FAILS;
    args = (tn_bench_args){.struct_size = sizeof args,
                           .problem = "matmul:f32:m=16,n=16,k=16@cpu:0",
                           .kernel = "cpu.matmul.trick"};
    assert_int_equal(tn_bench(NULL, &args, &result, &err), TN_BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_floats_come_back_as_they_were),
        cmocka_unit_test(numbers_are_rounded_to_nearest_even),
        cmocka_unit_test(numbers_are_within_their_bounds),
        cmocka_unit_test(nans_and_infinities_meet_their_like),
        cmocka_unit_test(wide_integers_are_compared_whole),
        cmocka_unit_test(bounds_follow_the_length_of_sums),
        cmocka_unit_test(bounds_have_room_for_a_rounded_product),
        cmocka_unit_test(bounds_follow_the_inputs),
        cmocka_unit_test(parts_give_what_the_whole_gives),
        cmocka_unit_test(honest_kernel_passes),
        cmocka_unit_test(many_packed_sequences_are_checked),
        cmocka_unit_test(wrong_numbers_are_found),
        cmocka_unit_test(bytes_that_are_no_outputs_stay_as_they_are),
        cmocka_unit_test(declarations_are_checked),
        cmocka_unit_test(some_kernels_are_not_recorded),
        cmocka_unit_test(same_seed_gives_the_same_inputs),
        cmocka_unit_test(nonfinite_inputs_are_made_on_request),
        cmocka_unit_test(gradients_come_from_a_forward_pass),
        cmocka_unit_test(rows_of_no_sequence_are_left),
        cmocka_unit_test(what_cannot_be_checked_says_why),
        cmocka_unit_test(mismatch_is_written_down),
        cmocka_unit_test(large_problems_are_sampled),
        cmocka_unit_test(kernels_are_timed),
    };
    return run_suite("unit.check", tests);
}
