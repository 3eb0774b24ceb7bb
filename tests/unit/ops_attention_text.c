/* Attention as text: random ops are written and read again without loss, and what is wrong with a text is
 * said in words. */
#include "ops_roll.h"

#include "op/attention/attention.h"

static void roll_numbers(tn_attention_op *at)
{
    static const double caps[] = {0, 0, 30, 0.1}, drops[] = {0, 0, 0.5, 0.1, 0x1p-30};
    int32_t place = (int32_t)roll(0, TN_MASK_COUNT - 1);
    *at = (tn_attention_op){0};
    (void)tni_attention_see(at, place, roll(-1, 5), roll(0, 3) ? roll(-1, 5) : INT64_MAX);
    at->corner = roll(0, 3) ? at->corner : TN_CORNER_TOP_LEFT;
    at->shift = roll(0, 3) ? 0 : roll(-20, 20);
    at->backend = roll(0, 2) ? 0 : (int32_t)roll(0, TN_BACKEND_COUNT - 1);
    at->scale = roll(0, 2) ? 1 : roll_real();
    at->softcap = PICK(caps);
    at->dropout = PICK(drops);
    at->seed = roll(0, 1) ? 0 : (uint64_t)roll(0, INT32_MAX) << 33;
    at->offset = roll(0, 1) ? 0 : ~(uint64_t)roll(0, 9);
}

/* Sizes of an op, and the dtype of its operands. */
typedef struct sizes {
    tn_dtype dtype;
    int64_t batch, heads, groups, queries, keys, size, value_size;
} sizes;

static sizes roll_sizes(void)
{
    sizes s = {.dtype = PICK(floats)};
    s.batch = roll(0, 9) ? roll(1, 5) : 0;
    s.groups = roll(0, 9) ? roll(1, 4) : 0;
    s.heads = s.groups * roll(1, 3);
    s.queries = roll_size();
    s.keys = roll(0, 2) ? roll_size() : s.queries;
    s.size = roll(0, 9) ? roll(1, 130) : 0;
    s.value_size = roll(0, 2) ? s.size : roll_size();
    return s;
}

/* Lying as most do, one way or the other, or any way. */
static void roll_whole(tn_layout *out, tn_dtype dtype, const int64_t *shape, bool loose)
{
    const int64_t turned[] = {shape[0], shape[2], shape[1], shape[3]};
    int64_t way = roll(0, 5);
    roll_layout(out, dtype, way < 2 ? turned : shape, 4, loose);
    if (way < 4)
        tni_layout_dense(out);
    if (way < 2)
        tni_layout_swap(out, 1, 2);
}

static void roll_mask(const sizes *s, tn_op *op)
{
    const int64_t shape[] = {s->batch, s->heads, s->queries, s->keys};
    const int64_t padding[] = {s->batch, 1, 1, s->keys};
    tn_layout *mask = &op->operand[TN_ATTENTION_MASK];
    switch (roll(0, 5)) {
    case 0: roll_smaller(mask, TN_BOOL, shape, 4); break;
    case 1: roll_smaller(mask, s->dtype, shape, 4); break;
    case 2: roll_smaller(mask, TN_F32, shape, 4); break;
    case 3: tni_layout_make(mask, roll(0, 1) ? (tn_dtype)TN_BOOL : s->dtype, padding, 4); break;
    default: break;
    }
}

static void roll_rows(const sizes *s, const int64_t *k_shape, bool packed, int64_t rows, tn_op *op)
{
    const int64_t batch = packed ? 1 : s->batch;
    const int64_t q[] = {batch, s->heads, rows, s->size};
    const int64_t v[] = {k_shape[0], s->groups, k_shape[2], s->value_size};
    const int64_t to[] = {batch, s->heads, rows, s->value_size};
    tn_dtype out = is_narrow(s->dtype) && roll(0, 2) == 0 ? (tn_dtype)TN_F32 : s->dtype;
    roll_whole(&op->operand[TN_ATTENTION_Q], s->dtype, q, true);
    roll_whole(&op->operand[TN_ATTENTION_K], s->dtype, k_shape, true);
    roll_whole(&op->operand[TN_ATTENTION_V], s->dtype, v, true);
    roll_whole(&op->operand[TN_ATTENTION_OUT], out, to, false);
    if (op->kind == TN_OP_ATTENTION_BACKWARD || roll(0, 1))
        roll_layout(&op->operand[TN_ATTENTION_LSE], tni_attention_lse(s->dtype), q, 3, false);
    if (op->kind == TN_OP_ATTENTION)
        return;
    roll_whole(&op->operand[TN_ATTENTION_BACKWARD_DOUT], s->dtype, to, true);
    roll_whole(&op->operand[TN_ATTENTION_BACKWARD_DQ], s->dtype, q, false);
    roll_whole(&op->operand[TN_ATTENTION_BACKWARD_DK], s->dtype, k_shape, false);
    roll_whole(&op->operand[TN_ATTENTION_BACKWARD_DV], s->dtype, v, false);
}

static void roll_table(tn_op *op, int32_t operand, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    roll_layout(&op->operand[operand], TN_I32, shape, columns ? 2 : 1, true);
}

static void roll_attention(tn_op *op)
{
    sizes s = roll_sizes();
    bool forward = op->kind == TN_OP_ATTENTION, packed = forward && roll(0, 3) == 0;
    bool paged = forward && roll(0, 3) == 0;
    int64_t k_shape[] = {s.batch, s.groups, s.keys, s.size}, rows = s.queries;
    roll_numbers(TN_PARAMS_MUTABLE(op, attention));
    if (packed) {
        s.batch = s.batch ? s.batch : 1;
        rows = roll(s.queries, s.queries * s.batch);
        k_shape[0] = 1;
        k_shape[2] = roll(s.keys, s.keys * s.batch);
        TN_PARAMS_MUTABLE(op, attention)->queries = s.queries;
        TN_PARAMS_MUTABLE(op, attention)->keys = s.keys;
        roll_table(op, TN_ATTENTION_STARTS_Q, s.batch + 1, 0);
    }
    if (packed && !paged)
        roll_table(op, TN_ATTENTION_STARTS_K, s.batch + 1, 0);
    if (paged) {
        k_shape[0] = roll(0, 20);
        k_shape[2] = roll(1, 16);
        roll_table(op, TN_ATTENTION_PAGES, s.batch, roll(1, 5));
    }
    if (paged || (forward && roll(0, 2) == 0))
        roll_table(op, TN_ATTENTION_LENGTHS, s.batch, 0);
    if (forward && roll(0, 2) == 0)
        roll_layout(&op->operand[TN_ATTENTION_SINKS], roll(0, 1) ? (tn_dtype)TN_F32 : s.dtype,
                    &s.heads, 1, true);
    if (!packed && !paged)
        roll_mask(&s, op);
    roll_rows(&s, k_shape, packed, rows, op);
    if (roll(0, 2) == 0)
        tni_layout_make(&op->operand[TN_ATTENTION_SEED], TN_I64, (const int64_t[]){2}, 1);
}

static void roll_merge(tn_op *op)
{
    const sizes s = roll_sizes();
    const int64_t shape[] = {s.batch, s.heads, s.queries, s.size};
    tn_dtype out = is_narrow(s.dtype) && roll(0, 2) == 0 ? (tn_dtype)TN_F32 : s.dtype;
    roll_whole(&op->operand[TN_MERGE_IN], s.dtype, shape, true);
    roll_whole(&op->operand[TN_MERGE_OTHER], s.dtype, shape, true);
    roll_whole(&op->operand[TN_MERGE_OUT], out, shape, false);
    for (int32_t i = TN_MERGE_LSE_IN; i < TN_MERGE_OPERANDS; i += 2) {
        if (i != TN_MERGE_LSE || roll(0, 1))
            roll_layout(&op->operand[i], tni_attention_lse(s.dtype), shape, 3, i != TN_MERGE_LSE);
    }
}

static void random_ops_round_trip(void **state)
{
    int rounds = test_reduced() ? 500 : 5000;
    (void)state;
    for (int32_t kind = TN_OP_ATTENTION; kind <= TN_OP_ATTENTION_MERGE; kind++) {
        uint64_t uses = 0;
        int settled = 0;
        for (int i = 0; i < rounds; i++) {
            tn_op op;
            tn_error err;
            tni_op_init(&op, tni_op_class_of(kind));
            if (kind == TN_OP_ATTENTION_MERGE)
                roll_merge(&op);
            else
                roll_attention(&op);
            tn_status status = tni_op_validate(&op, &err);
            if (status && status != TN_INVALID_ARGUMENT && status != TN_UNSUPPORTED)
                fail_msg("%s", err.message);
            if (status)
                continue;
            round_trip(&op);
            uses |= op.uses;
            settled++;
        }
        if (2 * settled < rounds)
            fail_msg("%s: only %d of %d make sense", tni_op_class_of(kind)->word, settled, rounds);
        if (kind == TN_OP_ATTENTION) /* every feature was among them */
            assert_int_equal(uses, (TN_ATTENTION_USES_SEED << 1) - 1);
    }
}

/* Settling is done once more where an op is changed: it must come to the same. */
static void settling_twice_is_once(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        tn_op op, again;
        tni_op_init(&op, tni_op_class_of(TN_OP_ATTENTION));
        roll_attention(&op);
        if (tni_op_validate(&op, NULL))
            continue;
        again = op;
        assert_int_equal(tni_op_validate(&again, NULL), TN_OK);
        assert_true(same_op(&op, &again));
    }
}

static void texts_are_read(void **state)
{
    tn_op op;
    (void)state;
    parse("attention:bf16:b=1,h=24,l=32760,d=128,mask=causal@cpu", &op);
    assert_true(TN_PARAMS(&op, attention)->queries == 32760 &&
                TN_PARAMS(&op, attention)->keys == 32760);
    assert_true(TN_PARAMS(&op, attention)->right == 0 && TN_PARAMS(&op, attention)->left == -1);
    parse("attention:f32:h=2,varlen=3;2x5;0,d=4", &op);
    assert_true(TN_PARAMS(&op, attention)->batch == 4 && TN_PARAMS(&op, attention)->queries == 5);
    assert_int_equal(op.operand[TN_ATTENTION_K].shape[2], 13);
    parse("attention:f32:h=2,varlen=3;2,rows=9,varlenk=4;1,d=4", &op);
    assert_true(TN_PARAMS(&op, attention)->queries == 3 &&
                op.operand[TN_ATTENTION_Q].shape[2] == 9);
    assert_true(TN_PARAMS(&op, attention)->keys == 4 && op.operand[TN_ATTENTION_K].shape[2] == 5);
    parse("attention:f32:h=2,varlen=3;2,rows=9,d=4", &op); /* keys are as queries */
    assert_true(TN_PARAMS(&op, attention)->keys == 3 && op.operand[TN_ATTENTION_K].shape[2] == 9);
    parse("attention:f32:h=2,varlen=1;1,d=4,page=16,lk=40", &op);
    assert_true(TN_PARAMS(&op, attention)->keys == 48 && op.operand[TN_ATTENTION_K].shape[0] == 6);
    parse("attention:f32:h=1,l=4,d=4,mask=window-tl:2;1;padding,shift=-3", &op);
    assert_true(TN_PARAMS(&op, attention)->left == 2 && TN_PARAMS(&op, attention)->right == 1);
    assert_int_equal(TN_PARAMS(&op, attention)->corner, TN_CORNER_TOP_LEFT);
    assert_int_equal(TN_PARAMS(&op, attention)->shift, -3);
    assert_int_equal(op.uses,
                     TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK | TN_ATTENTION_USES_OFFSET);
    parse("attention:f32:h=1,l=4,d=4,dropout=0.5,seed=device", &op);
    assert_int_equal(op.uses, TN_ATTENTION_USES_DROPOUT | TN_ATTENTION_USES_SEED);
    parse("attention-backward:f32:h=1,l=4,d=4,dropout=0.5,seed=device", &op);
    assert_int_equal(op.operand[TN_ATTENTION_BACKWARD_SEED].dtype, TN_I64);
    parse("attention:f32:h=1,l=4,d=4,backend=nabla_attn", &op);
    assert_int_equal(TN_PARAMS(&op, attention)->backend, TN_BACKEND_NABLA_ATTN);
    parse("attention-backward:f32:h=1,l=4,d=4,backend=FLASH_ATTN", &op);
    assert_int_equal(TN_PARAMS(&op, attention)->backend, TN_BACKEND_FLASH_ATTN);
    parse("attention:f32:h=1,l=4,d=4,shift=5", &op); /* of no window there is no place */
    assert_true(TN_PARAMS(&op, attention)->shift == 0 && op.uses == 0);
    parse("attention-merge:f16:h=3,l=4,d=5,lse=1,out=f32,layout=blhd", &op);
    assert_int_equal(op.operand[TN_MERGE_IN].stride[1], 5);
}

static void texts_are_refused(void **state)
{
    (void)state;
    expect_refused("attention:f32:l=4,d=4", "h is missing");
    expect_refused("attention:f32:h=1,l=4,d=4,backend=SAGE_ATN",
                   "no attention backend \"SAGE_ATN\"; did you mean SAGE_ATTN?");
    expect_refused("attention:f32:h=1,l=4,d=4,backend=flash",
                   "no attention backend \"flash\"; there are FLASH_ATTN, SLIDING_TILE_ATTN");
    expect_refused("attention-merge:f32:b=1,h=1,l=4,d=4,backend=FLASH_ATTN",
                   "attention-merge has no field \"backend\"");
    expect_refused("attention:f32:h=1,l=4", "d is missing");
    expect_refused("attention:f32:h=1,d=4", "l is missing");
    expect_refused("attention:f32:h=1,d=4,lk=3", "lq is missing");
    expect_refused("attention:f32:h=1,d=4,lq=3", "lk is missing");
    expect_refused("attention:f32:h=1,l=4,d=4,layout=bdhl",
                   "layout: expected one of bhld blhd, got \"bdhl\"");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=casual",
                   "mask: expected a position (none, causal, causal-br, window:L;R");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=casual", "got \"casual\"; did you mean causal?");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=causal;", "mask: expected a position");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=causal;bool;bool", "mask: expected a position");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=window:3", "mask: expected a position");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=window:-2;3", "mask: expected a position");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=window:9223372036854775808;3",
                   "mask: expected a position");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=bool,mdtype=f32", "has no field \"mdtype\"");
    expect_refused("attention:f32:h=1,l=4,d=4,sink=f33", "sink: no dtype \"f33\"");
    expect_refused("attention:f32:h=1,l=4,d=4,seed=-1", "seed: expected a whole number from 0 to");
    expect_refused("attention:f32:h=1,l=4,d=4,seed=18446744073709551616", "seed: expected a whole");
    expect_refused("attention:f32:h=1,l=4,d=4,seed=device,offset=3",
                   "offset: expected a seed that is a number");
    expect_refused("attention:f32:h=1,l=4,d=4,mask=causal,shift=281474976710657",
                   "shift: expected a number from -2^48 to 2^48");
    expect_refused("attention:f32:h=1,varlen=,d=4", "expected the form key=value");
    expect_refused("attention:f32:h=1,varlen=3;,d=4", "varlen: expected lengths like 128;3x77");
    expect_refused("attention:f32:h=1,varlen=0x3,d=4", "varlen: expected lengths");
    expect_refused("attention:f32:h=1,varlen=2x1073741824,d=4", "varlen: expected lengths");
    expect_refused("attention:f32:h=1,varlen=1073741824;1073741824,d=4",
                   "varlen: expected lengths");
    expect_refused("attention:f32:h=1,varlen=2147483647x0;1,d=4", "varlen: expected lengths");
    expect_refused("attention:f32:h=1,varlen=3;4,rows=6,d=4", "rows: expected");
    expect_refused("attention:f32:h=1,varlen=3;4,rowsk=6,d=4", "rowsk: expected");
    expect_refused("attention:f32:h=1,l=4,rows=6,d=4", "attention has no field \"rows\"");
    expect_refused("attention:f32:h=1,varlen=3;4,varlenk=3,d=4",
                   "varlenk: expected as many lengths as varlen");
    expect_refused("attention:f32:b=3,h=1,varlen=3;4,d=4", "attention has no field \"b\"");
    expect_refused("attention:f32:h=1,varlen=3;4,lq=9,d=4", "attention has no field \"lq\"");
    expect_refused("attention:f32:h=1,varlen=3;4,lk=9,d=4", "attention has no field \"lk\"");
    expect_refused("attention:f32:h=1,l=4,varlenk=4,d=4", "attention has no field \"varlenk\"");
    expect_refused("attention:f32:h=1,varlen=3,varlenk=3,d=4,page=2", "no field \"varlenk\"");
    expect_refused("attention:f32:h=1,l=4,d=4,pool=2", "attention has no field \"pool\"");
    expect_refused("attention:f32:h=1,l=4,d=4,page=2,used=0", "attention has no field \"used\"");
    expect_refused("attention:f32:h=1,l=9223372036854775807,d=4,page=2", "63 bits");
    expect_refused("attention:f32:b=9223372036854775807,h=1,l=9,d=4,page=2",
                   "lk: expected no more pages than 63 bits count");
    expect_refused("attention:f32:h=9223372036854775807,l=9223372036854775807,d=4", "63 bits");
    expect_refused("attention:f32:h=3,hk=2,l=4,d=4",
                   "q: expected a multiple of the 2 heads of k and v, got 3");
    expect_refused("attention:f32:h=1,l=4,d=4,so=0;0;0;0", "out: its strides map several");
    expect_refused("attention:i32:h=1,l=4,d=4", "q: expected f64, f32, f16 or bf16, got i32");
    static const char *const forward_only[] = {"sink=1", "lse=1",    "used=1",   "page=2",
                                               "pool=2", "varlen=3", "varlenk=3"};
    for (size_t i = 0; i < sizeof forward_only / sizeof forward_only[0]; i++) {
        char text[80], field[32];
        snprintf(text, sizeof text, "attention-backward:f32:h=1,l=4,d=4,%s", forward_only[i]);
        snprintf(field, sizeof field, "has no field \"%.*s\"", (int)strcspn(forward_only[i], "="),
                 forward_only[i]);
        expect_refused(text, field);
    }
    expect_refused("attention-backward:f32:h=1,l=4,d=4,backward=0", "no field \"backward\"");
    expect_refused("attention-merge:f32:h=1,l=4", "d is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ops_round_trip),
        cmocka_unit_test(settling_twice_is_once),
        cmocka_unit_test(texts_are_read),
        cmocka_unit_test(texts_are_refused),
    };
    return run_suite("unit.ops_attention_text", tests);
}
