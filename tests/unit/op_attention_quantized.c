/* attention-quantized: what tensors and arguments make of it, what is refused, and that calls are near attention.
 *
 * unit.stack: OPERATOR(attention_quantized, .q = &q, .k = &k, .v = &v, .out = &attended, .weights = TN_U8) */
#include "ops_elementwise.h"

static piece q, k, v, out, lse;

#define PLAIN .q = &q.tensor, .k = &k.tensor, .v = &v.tensor, .out = &out.tensor

/* b = 2, h = 6, lq = 4, lk = 5, d = 8, apart from each other. */
static void make_pieces(void)
{
    (void)DENSE(&q, 0, TN_F32, 2, 6, 4, 8);
    (void)DENSE(&k, 4096, TN_F32, 2, 6, 5, 8);
    (void)DENSE(&v, 8192, TN_F32, 2, 6, 5, 8);
    (void)DENSE(&out, 12288, TN_F32, 2, 6, 4, 8);
    (void)DENSE(&lse, 16384, TN_F32, 2, 6, 4);
}

static const tn_attention_quantized_op *quantized_of(const tn_op *op)
{
    return TN_PARAMS(op, attention_quantized);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    make_pieces();
    CHECK_ARGS(attention_quantized);
    REFUSED(attention_quantized, "k: the tensor is NULL", .q = &q.tensor, .v = &v.tensor,
            .out = &out.tensor);
    REFUSED(attention_quantized, "weights: expected f32, f16, f8_e4m3fn, u8 or i8, got bf16", PLAIN,
            .weights = TN_BF16);
    REFUSED(attention_quantized, "scales: expected 0 (thread) to 2, got 3", PLAIN, .scales = 3);
    REFUSED(attention_quantized, "scales: expected 0 (thread) to 2, got -1", PLAIN, .scales = -1);
    REFUSED(attention_quantized, "smoothing: expected 0 (k) or 1 (none), got 2", PLAIN,
            .smoothing = 2);
    REFUSED(attention_quantized, "mask: expected 0 (none) to 3, got 4", PLAIN, .mask = 4);
    REFUSED(attention_quantized, "layout: expected 0 (bhld) or 1 (blhd), got 2", PLAIN,
            .layout = 2);
    REFUSED(attention_quantized, "scale: expected a finite number, got inf", PLAIN,
            .scale = (double)INFINITY);
    REFUSED(attention_quantized, "args->set has bits", PLAIN, .set = 2);
    REFUSED(attention_quantized, "lse: expected f32 for q of f32, got f64", PLAIN,
            .lse = DENSE(&lse, 16384, TN_F64, 2, 6, 4));
    make_pieces();
    REFUSED(attention_quantized, "v: expected f32 for q of f32, got bf16", .q = &q.tensor,
            .k = &k.tensor, .v = DENSE(&v, 8192, TN_BF16, 2, 6, 5, 8), .out = &out.tensor);
    make_pieces();
    (void)DENSE(&k, 4096, TN_F32, 2, 6, 5, 7);
    REFUSED(attention_quantized, "k: expected 8, the head size of q, got 7", PLAIN);
    make_pieces();
    REFUSED(attention_quantized, "q: expected a multiple of the 4 heads of k and v, got 6",
            .q = &q.tensor, .k = DENSE(&k, 4096, TN_F32, 2, 4, 5, 8),
            .v = DENSE(&v, 8192, TN_F32, 2, 4, 5, 8), .out = &out.tensor);
    UNSUPPORTED(attention_quantized, "q: expected f32, f16 or bf16, got f64",
                .q = DENSE(&q, 0, TN_F64, 2, 6, 4, 8), .k = DENSE(&k, 4096, TN_F64, 2, 6, 5, 8),
                .v = DENSE(&v, 8192, TN_F64, 2, 6, 5, 8), .out = &out.tensor);
    expect_refused("attention-quantized:f32:h=1,l=4", "d is missing");
    expect_refused("attention-quantized:f32:h=1,d=4", "lq is missing");
    expect_refused("attention-quantized:f32:h=1,l=4,d=4,weights=bf16", "weights: expected f32");
    expect_refused("attention-quantized:f32:h=1,l=4,d=4,scales=row", "scales");
    expect_refused("attention-quantized:f32:h=1,l=4,d=4,mask=bool", "mask: expected none, causal");
    expect_refused("attention-quantized:f32:h=1,l=4,d=65537", "head size of at most 65536");
}

static void problems_have_a_text(void **state)
{
    (void)state;
    make_pieces();
    const tn_op *op = MAKE(attention_quantized, PLAIN);
    assert_true(op->kind == TN_OP_ATTENTION_QUANTIZED &&
                op->count == TN_ATTENTION_QUANTIZED_OPERANDS);
    assert_int_equal(op->uses, 0);
    assert_true(quantized_of(op)->at.scale == 1 / sqrt(8) && quantized_of(op)->weights == TN_F32);
    assert_string_equal(round_trip(op), "attention-quantized:f32:b=2,h=6,lq=4,lk=5,d=8");
    TEXT(attention_quantized,
         "attention-quantized:f32:b=2,h=6,lq=4,lk=5,d=8,mask=causal-br,weights=u8,scales=block,"
         "smoothing=none,lse=1,scale=0.5",
         PLAIN, .mask = TN_MASK_CAUSAL_BR, .lse = &lse.tensor, .scale = 0.5, .weights = TN_U8,
         .scales = TN_SCALES_BLOCK, .smoothing = TN_SMOOTHING_NONE);
    assert_int_equal(problem.op.uses,
                     TN_ATTENTION_QUANTIZED_USES_WINDOW | TN_ATTENTION_QUANTIZED_USES_LSE |
                         TN_ATTENTION_QUANTIZED_USES_RAW | TN_ATTENTION_QUANTIZED_USES_I8);
    TEXT(attention_quantized,
         "attention-quantized:f32:b=2,h=6,lq=4,lk=5,d=8,mask=window:2;1,weights=f8_e4m3fn", PLAIN,
         .mask = TN_MASK_WINDOW, .window_left = 2, .window_right = 1, .weights = TN_F8_E4M3FN);
    tn_op said;
    parse("attention-quantized:bf16:h=4,hk=2,l=9,d=8,dv=4,layout=blhd,weights=f16,out=f32", &said);
    assert_string_equal(
        round_trip(&said),
        "attention-quantized:bf16:b=1,h=4,hk=2,l=9,d=8,dv=4,layout=blhd,weights=f16,out=f32");
    assert_int_equal(said.uses,
                     TN_ATTENTION_QUANTIZED_USES_GROUPS | TN_ATTENTION_QUANTIZED_USES_VALUE_SIZE |
                         TN_ATTENTION_QUANTIZED_USES_OUT_DTYPE | TN_ATTENTION_QUANTIZED_USES_F16);
}

/* Plans of problems that differ in a parameter alone have different keys. */
static void parameters_are_part_of_the_key(void **state)
{
    static const char *const texts[] = {
        "attention-quantized:f32:h=1,l=4,d=4",
        "attention-quantized:f32:h=1,l=4,d=4,scales=warp",
        "attention-quantized:f32:h=1,l=4,d=4,scales=block",
        "attention-quantized:f32:h=1,l=4,d=4,weights=u8",
        "attention-quantized:f32:h=1,l=4,d=4,weights=i8",
        "attention-quantized:f32:h=1,l=4,d=4,smoothing=none",
    };
    enum { COUNT = sizeof texts / sizeof texts[0] };
    static uint64_t keys[COUNT][TNI_KEY_MOST];
    size_t counts[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        tn_op op;
        parse(texts[i], &op);
        counts[i] = tni_op_key(&op, keys[i]);
        for (int n = 0; n < i; n++)
            assert_true(counts[n] != counts[i] ||
                        memcmp(keys[n], keys[i], counts[i] * sizeof keys[i][0]) != 0);
    }
}

enum { HEADS = 2, LENGTH = 150, SIZE = 24 };
static float numbers[4][HEADS * LENGTH * SIZE], found[HEADS * LENGTH * SIZE];

static const tn_tensor *tensor_of(piece *p, void *data, const int64_t *shape)
{
    (void)piece_at(p, 0, TN_F32, shape, NULL);
    p->tensor.data = data;
    return &p->tensor;
}

/* Calls honour the mask and the scale: the result is near that of attention with the same ones, and far from that with
 * other ones. */
static void calls_are_near_attention(void **state)
{
    static const int64_t shape[] = {1, HEADS, LENGTH, SIZE, -1};
    static const int32_t masks[] = {TN_MASK_NONE, TN_MASK_CAUSAL, TN_MASK_WINDOW};
    static const tn_dtype weights[] = {TN_F32, TN_F16, TN_F8_E4M3FN, TN_U8, TN_I8, 0};
    (void)state;
    for (int n = 0; n < 3; n++) {
        for (int i = 0; i < HEADS * LENGTH * SIZE; i++)
            numbers[n][i] = (float)roll(-1000, 1000) / 500;
    }
    for (int turn = 0; turn < 18; turn++) {
        tn_error err = {0};
        const tn_tensor *tq = tensor_of(&q, numbers[0], shape);
        const tn_tensor *tk = tensor_of(&k, numbers[1], shape);
        const tn_tensor *tv = tensor_of(&v, numbers[2], shape);
        const tn_tensor *dense = tensor_of(&out, numbers[3], shape);
        const int32_t mask = masks[turn % 3], side = mask == TN_MASK_WINDOW ? 20 : 0;
        if (tn_attention(NULL,
                         TN_ARGS(attention, .q = tq, .k = tk, .v = tv, .out = dense, .mask = mask,
                                 .window_left = side, .window_right = side, .scale = 0.3),
                         &err))
            fail_msg("%s", err.message);
        if (tn_attention_quantized(NULL,
                                   TN_ARGS(attention_quantized, .q = tq, .k = tk, .v = tv,
                                           .out = tensor_of(&out, found, shape), .mask = mask,
                                           .window_left = side, .window_right = side, .scale = 0.3,
                                           .weights = weights[turn / 3]),
                                   &err))
            fail_msg("%s", err.message);
        double off = 0, all = 0;
        for (int i = 0; i < HEADS * LENGTH * SIZE; i++) {
            off += fabs((double)found[i] - (double)numbers[3][i]);
            all += fabs((double)numbers[3][i]);
        }
        assert_true(off <= 0.05 * all && off > 0);
    }
}

static void calls_are_explained_and_prepared(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_decision *decision = NULL;
    make_pieces();
    assert_int_equal(
        tn_attention_quantized_prepare(NULL, TN_ARGS(attention_quantized, PLAIN), &err), TN_OK);
    assert_int_equal(
        tn_attention_quantized_explain(NULL, TN_ARGS(attention_quantized, PLAIN), &decision, &err),
        TN_OK);
    tn_decision_release(decision);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(problems_have_a_text),
        cmocka_unit_test(parameters_are_part_of_the_key),
        cmocka_unit_test(calls_are_near_attention),
        cmocka_unit_test(calls_are_explained_and_prepared),
    };
    return run_suite("unit.op_attention_quantized", tests);
}
