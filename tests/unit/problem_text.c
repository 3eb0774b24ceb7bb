/* Problems as text: random ops of every class are written and read again without loss, and what is
 * wrong with a text is said in words. */
#include "ops_roll.h"

#include "base/op_words.h"
#include "tenon/check.h"
#include "tenon/module/op/attention.h"
#include "tenon/module/op/binary.h"
#include "tenon/module/op/cast.h"
#include "tenon/module/op/fill.h"
#include "tenon/module/op/matmul.h"
#include "tenon/module/op/norm.h"
#include "tenon/module/op/permute.h"
#include "tenon/module/op/reduce.h"
#include "tenon/module/op/rotary.h"
#include "tenon/module/op/softmax.h"
#include "tenon/module/op/unary.h"

static const tn_dtype all[] = {
#define DTYPE(name, word, code, bits) name,
    TN_DTYPE_LIST(DTYPE)
#undef DTYPE
};
static const tn_dtype small[] = {TN_F8_E4M3FN, TN_F8_E5M2};
static const tn_dtype factors[] = {TN_F64, TN_F32,  TN_F16,       TN_BF16,   TN_I8,
                                   TN_C64, TN_C128, TN_F8_E4M3FN, TN_F8_E5M2};

static bool is_small(tn_dtype dtype)
{
    return dtype == TN_F8_E4M3FN || dtype == TN_F8_E5M2;
}

/* Of 8-bit floats: scales, none or some, that are the same along one dimension of out. */
static void roll_scales(tn_op *op)
{
    const tn_layout *out = &op->operand[TN_MATMUL_OUT];
    for (int32_t i = 0; i < 2; i++) {
        int64_t shape[TN_OP_RANK_MAX];
        memcpy(shape, out->shape, sizeof shape);
        shape[out->rank - 1 - i] = 1;
        if (roll(0, 1))
            roll_smaller(&op->operand[TN_MATMUL_SCALE_A + i], TN_F32, shape, out->rank);
    }
}

static void roll_matmul(tn_op *op)
{
    int64_t batch[TN_OP_RANK_MAX], shape[TN_OP_RANK_MAX];
    int32_t rank = (int32_t)roll(2, TN_OP_RANK_MAX);
    int64_t size[] = {roll_size(), roll_size(), roll_size()};
    static const int ends[][2] = {{0, 2}, {2, 1}, {0, 1}};
    tn_dtype dtype = PICK(factors), out = dtype == TN_I8 ? (tn_dtype)TN_I32 : dtype;
    out = (is_narrow(dtype) || dtype == TN_I8) && roll(0, 2) == 0 ? (tn_dtype)TN_F32 : out;
    out = is_small(dtype) ? (tn_dtype)(roll(0, 1) ? TN_F32 : TN_BF16) : out;
    for (int32_t i = 0; i < rank - 2; i++)
        batch[i] = roll(0, 9) == 0 ? 0 : roll(1, 4);
    for (int32_t i = TN_MATMUL_A; i <= TN_MATMUL_OUT; i++) {
        int32_t missing = i == TN_MATMUL_OUT || roll(0, 1) ? 0 : (int32_t)roll(0, rank - 2);
        for (int32_t d = missing; d < rank - 2; d++)
            shape[d - missing] = i != TN_MATMUL_OUT && roll(0, 4) == 0 ? 1 : batch[d];
        shape[rank - missing - 2] = size[ends[i][0]];
        shape[rank - missing - 1] = size[ends[i][1]];
        tn_dtype its = i == TN_MATMUL_OUT                    ? out
                       : i == TN_MATMUL_B && is_small(dtype) ? PICK(small)
                                                             : dtype;
        roll_layout(&op->operand[i], its, shape, rank - missing, i != TN_MATMUL_OUT);
    }
    if (roll(0, 1))
        roll_smaller(&op->operand[TN_MATMUL_BIAS], out, op->operand[TN_MATMUL_OUT].shape, rank);
    if (is_small(dtype))
        roll_scales(op);
    bool real = out != TN_I32 && out != TN_C64 && out != TN_C128;
    tn_dtype acc = is_narrow(dtype) || is_small(dtype) ? (tn_dtype)TN_F32
                   : dtype == TN_I8                    ? (tn_dtype)TN_I32
                                                       : dtype;
    *TN_PARAMS_MUTABLE(op, matmul) =
        (tn_matmul_op){.activation = real ? (int32_t)roll(0, TN_ACT_COUNT - 1) : 0,
                       .acc = is_narrow(dtype) && roll(0, 1) ? dtype : acc,
                       .alpha = roll(0, 1) ? 1 : roll_real(),
                       .beta = roll(0, 1) ? 0 : roll_real()};
}

static int32_t kinds_of(int32_t op)
{
    switch (op) {
    case TN_OP_UNARY: return TN_UNARY_COUNT;
    case TN_OP_BINARY: return TN_BINARY_COUNT;
    case TN_OP_REDUCE: return TN_REDUCE_COUNT;
    case TN_OP_NORM: return TN_NORM_COUNT;
    case TN_OP_ROTARY: return TN_ROTARY_COUNT;
    default: return 1;
    }
}

static void roll_tables(tn_op *op, const int64_t *shape, int32_t rank)
{
    tn_dtype dtype = op->operand[TN_ELEMENTWISE_IN].dtype;
    for (int32_t i = TN_ELEMENTWISE_OUT + 1; i < op->count; i++) {
        tn_dtype its = roll(0, 2) == 0 ? (tn_dtype)TN_F32 : dtype;
        int64_t angles[TN_OP_RANK_MAX];
        memcpy(angles, shape, sizeof angles);
        if (op->kind == TN_OP_NORM && roll(0, 1))
            roll_layout(&op->operand[i], its, &shape[rank - 1], 1, false);
        if (op->kind != TN_OP_ROTARY)
            continue;
        angles[rank - 1] = TN_PARAMS(op, elementwise)->size / 2;
        roll_smaller(&op->operand[i], its, angles, rank);
    }
}

/* Of any helper op; what makes no sense is left to `settle`. */
static void roll_each(tn_op *op)
{
    bool rows = op->kind == TN_OP_SOFTMAX || op->kind == TN_OP_NORM || op->kind == TN_OP_ROTARY;
    int64_t shape[TN_OP_RANK_MAX] = {0};
    int32_t rank = (int32_t)roll(rows, TN_OP_RANK_MAX);
    tn_dtype dtype = rows ? PICK(floats) : PICK(all), out = dtype;
    out = is_narrow(dtype) && op->kind >= TN_OP_UNARY && roll(0, 1) ? (tn_dtype)TN_F32 : out;
    out = op->kind == TN_OP_CAST ? PICK(all) : out;
    for (int32_t i = 0; i < rank; i++)
        shape[i] = rank > 4 ? roll(0, 3) : roll_size();
    *TN_PARAMS_MUTABLE(op, elementwise) =
        (tn_elementwise_op){.kind = (int32_t)roll(0, kinds_of(op->kind) - 1)};
    if (op->kind == TN_OP_FILL) {
        TN_PARAMS_MUTABLE(op, elementwise)->value = roll_real();
        TN_PARAMS_MUTABLE(op, elementwise)->imaginary =
            dtype == TN_C64 || dtype == TN_C128 ? roll_real() : 0;
    } else
        roll_layout(&op->operand[TN_ELEMENTWISE_IN], dtype, shape, rank, true);
    if (op->kind == TN_OP_BINARY) {
        roll_smaller(&op->operand[TN_ELEMENTWISE_IN], dtype, shape, rank);
        roll_smaller(&op->operand[TN_ELEMENTWISE_OTHER], dtype, shape, rank);
    }
    if (op->kind == TN_OP_NORM)
        TN_PARAMS_MUTABLE(op, elementwise)->value = roll(0, 1) ? 1e-5 : fabs(roll_real());
    if (op->kind == TN_OP_ROTARY) {
        shape[rank - 1] = op->operand[TN_ELEMENTWISE_IN].shape[rank - 1] &= ~INT64_C(1);
        TN_PARAMS_MUTABLE(op, elementwise)->size =
            shape[rank - 1] / 2 > 0 ? 2 * roll(1, shape[rank - 1] / 2) : 0;
    }
    roll_tables(op, shape, rank);
    if (op->kind == TN_OP_REDUCE) {
        TN_PARAMS_MUTABLE(op, elementwise)->axes = rank ? (int32_t)roll(1, rank) : 0;
        for (int32_t i = rank - TN_PARAMS(op, elementwise)->axes; i < rank; i++)
            shape[i] = 1;
    }
    roll_layout(&op->operand[TN_ELEMENTWISE_OUT], out, shape, rank, false);
    if (op->kind == TN_OP_SOFTMAX && roll(0, 1))
        op->uses |= TN_ELEMENTWISE_USES_LOG;
    if (tni_op_class_of(op->kind)->may_be_in_place && roll(0, 5) == 0) {
        op->operand[TN_ELEMENTWISE_IN] = op->operand[TN_ELEMENTWISE_OUT];
        op->uses |= TN_ELEMENTWISE_USES_IN_PLACE;
    }
}

/* Ops of a class; those that make sense are at least half of them. Attention has a suite of its own. */
static void random_ops_round_trip(void **state)
{
    int rounds = test_reduced() ? 300 : 3000;
    (void)state;
    for (int32_t kind = TN_OP_NONE + 1; kind < TN_OP_ATTENTION; kind++) {
        int settled = 0;
        for (int i = 0; i < rounds; i++) {
            tn_op op;
            tn_error err;
            tni_op_init(&op, tni_op_class_of(kind));
            if (kind == TN_OP_MATMUL)
                roll_matmul(&op);
            else
                roll_each(&op);
            tn_status status = tni_op_validate(&op, &err);
            if (status && status != TN_INVALID_ARGUMENT && status != TN_UNSUPPORTED)
                fail_msg("%s", err.message);
            if (status)
                continue;
            round_trip(&op);
            settled++;
        }
        if (2 * settled < rounds)
            fail_msg("%s: only %d of %d make sense", tni_op_class_of(kind)->word, settled, rounds);
    }
}

/* The end of the message for an unknown operator, up to the hint: all operators by number. */
static const char *all_operators(void)
{
    static char text[512];
    int length = snprintf(text, sizeof text, "; there are");
    for (int32_t kind = TN_OP_NONE + 1; kind < TN_OP_KIND_MAX; kind++) {
        const char *word = tni_op_word(kind);
        if (word)
            length += snprintf(text + length, sizeof text - (size_t)length, " %s", word);
        assert_true(length < (int)sizeof text - 2);
    }
    snprintf(text + length, sizeof text - (size_t)length, "; ");
    return text;
}

/* What a text is cut into. */
static void forms_are_refused(void **state)
{
    (void)state;
    expect_refused("", "no operator \"\"");
    expect_refused("matmull:f32", all_operators());
    expect_refused("matmull:f32", "; did you mean matmul?");
    expect_refused("sofmax:f32:shape=4", "did you mean softmax?");
    expect_refused("matmul", "expected the form matmul:DTYPE:FIELD=VALUE,...");
    expect_refused("matmul:f31:m=1", "no dtype \"f31\"; did you mean f32?");
    expect_refused("matmul:float32:m=1", "no dtype \"float32\"; did you mean f32?");
    expect_refused("matmul:halff", "no dtype \"halff\"; did you mean f16?");
    expect_refused("unary:f32:", "expected the form key=value, got \"\"");
    expect_refused("unary:f32:kind", "expected the form key=value, got \"kind\"");
    expect_refused("unary:f32:=neg", "expected the form key=value, got \"=neg\"");
    expect_refused("unary:f32:kind=", "expected the form key=value");
    expect_refused("unary:f32:kind=neg,", "expected the form key=value, got \"\"");
    expect_refused("unary:f32:kind=neg,kind=abs", "kind occurs twice");
    expect_refused("unary:f32:kind=n/g", "has characters that no field has");
    expect_refused("unary:f32:kind=neg,shape=4,colour=1",
                   "unary has no field \"colour\"; there are kind shape out si so inplace align");
    expect_refused("matmul:f32:m=1,n=1,k=1,alhpa=2",
                   "; there are m ta n tb k bias batch b scale_a scale_b out acc grouped alpha "
                   "beta act sa sb sc align; did you mean alpha?");
    expect_refused("unary:f32:kind=negg,shape=4", "; did you mean neg?");
    expect_refused("norm:f32:kind=foo,shape=4", "kind: expected one of layer rms, got \"foo\"");
    expect_refused("unary:f32:kind=negg,shape=4", "kind: expected one of neg ");
    expect_refused("permute:f32:shape=4,inplace=1", "permute has no field \"inplace\"");
    expect_refused("permute:f32:shape=4,out=f64", "permute has no field \"out\"");
    expect_refused("fill:f32:shape=4,out=f64", "fill has no field \"out\"");
    expect_refused("unary:f32:kind=neg,shape=4,inplace=2", "inplace: expected 0 or 1");
    expect_refused("unary:f32:kind=neg,shape=4,inplace=1,si=2", "in place, out needs");
    expect_refused("unary:f32:kind=neg,shape=4,inplace=1,align=4;8", "in place, out needs");
    expect_refused("unary:f32:kind=neg,shape=1x2x3x4x5x6x7x8x9", "shape: expected up to 8 whole");
    expect_refused("unary:f32:kind=neg,shape=4x-1",
                   "shape: expected up to 8 whole numbers from 0 to 9223372036854775807");
    expect_refused("unary:f32:kind=neg,shape=4,align=4", "align: expected 2 numbers, one for each");
    expect_refused("unary:f32:kind=neg,shape=4,align=4;3", "powers of two up to 64, got 3");
    expect_refused("unary:f32:kind=neg,shape=4,align=4;128", "powers of two up to 64, got 128");
    expect_refused("unary:f32:kind=neg,shape=4,so=0", "out: its strides map several elements");
    expect_refused("unary:f32:kind=neg,shape=4,si=4611686018427387904", "in:");
    expect_refused("unary:f32:kind=neg,shape=3000000000x3000000000x3000000000", "63 bits");
    expect_refused("permute:f32:shape=2x3,order=1;1", "order[1] is 1: duplicate dimension");
    expect_refused("permute:f32:shape=2x3,order=1", "order: expected 2 numbers");
    expect_refused("permute:f32:shape=2x3,order=1;99999999999",
                   "order[1]: expected a dimension of in");
    expect_refused("fill:f32:shape=2,value=1,imaginary=1", "imaginary: expected complex numbers");
    expect_refused("fill:f32:shape=2,value=0x", "value: expected a number, got \"0x\"");
    expect_refused("fill:f32:shape=2,value=-1e999",
                   "value: expected a number up to 1.79e308, or inf, got \"-1e999\"");
    expect_refused("fill:f32:shape=2@", "@ must be followed by a device");
}

/* The number of operators. */
enum {
#define TNI_OP(NAME, noun, word) COUNTED_##NAME,
#include "op_list.h"
#undef TNI_OP
    OPERATORS
};

static void classes_are_found(void **state)
{
    int count = 0;
    int32_t last = 0;
    (void)state;
    assert_null(tni_op_class_of(TN_OP_NONE));
    assert_null(tni_op_class_of(TN_OP_KIND_MAX));
    assert_null(tni_op_class_of(-1));
    assert_null(tni_op_class_find("Matmul"));
    for (int32_t kind = TN_OP_NONE + 1; kind < TN_OP_KIND_MAX; kind++) {
        const tni_op_class *class = tni_op_class_of(kind);
        assert_int_equal(class != NULL, tni_op_word(kind) != NULL);
        if (!class)
            continue;
        assert_string_equal(class->word, tni_op_word(kind));
        assert_string_equal(class->word, tn_op_name(kind));
        assert_ptr_equal(class->fields, tn_op_fields(kind));
        assert_int_equal(tn_op_next(last), kind);
        last = kind;
        count++;
        assert_int_equal(class->kind, kind);
        assert_ptr_equal(tni_op_class_find(class->word), class);
        char face[32];
        snprintf(face, sizeof face, "tn_%s", class->word);
        for (char *at = face; *at; at++)
            *at = *at == '-' ? '_' : *at;
        assert_string_equal(class->where, face);
        assert_string_equal(tni_op_class_nearest(class->word), class->word);
    }
    assert_int_equal(count, OPERATORS);
    assert_int_equal(tn_op_next(last), 0);
    assert_int_equal(tn_op_next(INT32_MAX), 0);
    assert_int_equal(tn_op_next(-1), tn_op_next(0));
    assert_string_equal(tn_op_fields(TN_OP_NONE), "");
}

static void limits_are_refused(void **state)
{
    (void)state;
    char text[TNI_PROBLEM_MOST + 32], device[4] = "old";
    tn_op op;
    tn_error err;
    memset(text, 'x', sizeof text);
    text[TNI_PROBLEM_MOST] = '\0';
    expect_refused(text, "expected at most 4095 bytes, got 4096");
    int length = snprintf(text, sizeof text, "fill:f32:a0=1");
    for (int i = 1; i <= TNI_FIELDS_MOST; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ",a%d=1", i);
    expect_refused(text, "expected at most 48 fields");
    assert_int_equal(tni_problem_parse(NULL, &op, device, sizeof device, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the problem is NULL");
    assert_int_equal(tni_problem_parse("fill:f32:shape=1@cpu:0", &op, device, sizeof device, &err),
                     TN_INVALID_ARGUMENT);
    assert_contains(err.message, "the device's name: expected at most 3 bytes, got 5");
    assert_string_equal(device, "old");
}

static void devices_stand_at_the_end(void **state)
{
    (void)state;
    char device[32];
    tn_op op;
    tn_error err;
    assert_int_equal(
        tni_problem_parse("fill:f32:shape=3,value=2@cpu:0", &op, device, sizeof device, &err),
        TN_OK);
    assert_string_equal(device, "cpu:0");
    tni_buffer text = {0};
    tni_problem_write(&op, device, &text);
    assert_string_equal(tni_buffer_text(&text), "fill:f32:shape=3,value=2@cpu:0");
    tni_buffer_release(&text);
    assert_int_equal(tni_problem_parse("permute:f32@best", &op, device, sizeof device, &err),
                     TN_OK);
    assert_true(op.kind == TN_OP_PERMUTE && op.operand[0].rank == 0);
    assert_string_equal(device, "best");
    assert_int_equal(tni_problem_parse("permute:f32", &op, device, sizeof device, &err), TN_OK);
    assert_string_equal(device, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ops_round_trip),    cmocka_unit_test(forms_are_refused),
        cmocka_unit_test(classes_are_found),        cmocka_unit_test(limits_are_refused),
        cmocka_unit_test(devices_stand_at_the_end),
    };
    return run_suite("unit.problem_text", tests);
}
