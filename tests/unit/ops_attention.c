/* Attention as ops: what tensors and arguments make of them, and what is refused. */
#include "ops_check.h"

#include "op/attention/attention.h"

static tni_problem problem;

#define MAKE(...)       make(TN_ARGS(attention, __VA_ARGS__))
#define MAKE_BACK(...)  make_back(TN_ARGS(attention_backward, __VA_ARGS__))
#define MAKE_MERGE(...) make_merge(TN_ARGS(attention_merge, __VA_ARGS__))

#define MAKER(name, noun)                                  \
    static const tn_op *name(const tn_##noun##_args *args) \
    {                                                      \
        tn_error err;                                      \
        memset(&problem, 0xA5, sizeof problem);            \
        if (tni_##noun##_make(args, &problem, &err))       \
            fail_msg("%s", err.message);                   \
        round_trip(&problem.op);                           \
        return &problem.op;                                \
    }
MAKER(make, attention)
MAKER(make_back, attention_backward)
MAKER(make_merge, attention_merge)

#define REFUSED(status, part, ...) refused(TN_ARGS(attention, __VA_ARGS__), status, part)
#define REFUSED_BACK(part, ...)    refused_back(TN_ARGS(attention_backward, __VA_ARGS__), part)
#define REFUSED_MERGE(part, ...)   refused_merge(TN_ARGS(attention_merge, __VA_ARGS__), part)

static void refused(const tn_attention_args *args, tn_status status, const char *part)
{
    tn_error err = {0};
    assert_int_equal(tni_attention_make(args, &problem, &err), status);
    assert_int_equal(err.status, status);
    assert_string_equal(err.where, "tn_attention");
    assert_contains(err.message, part);
    assert_int_equal(tni_attention_make(args, &problem, NULL), status);
}

static void refused_back(const tn_attention_backward_args *args, const char *part)
{
    tn_error err = {0};
    assert_int_equal(tni_attention_backward_make(args, &problem, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.where, "tn_attention_backward");
    assert_contains(err.message, part);
}

static void refused_merge(const tn_attention_merge_args *args, const char *part)
{
    tn_error err = {0};
    assert_int_equal(tni_attention_merge_make(args, &problem, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.where, "tn_attention_merge");
    assert_contains(err.message, part);
}

/* b = 2, h = 6, hk = 6, lq = 4, lk = 5, d = 8, dv = 8, apart from each other. */
static piece q, k, v, out, lse, mask, sinks, starts_q, starts_k, lengths, pages, seed;
#define PLAIN  .q = &q.tensor, .k = &k.tensor, .v = &v.tensor, .out = &out.tensor
#define PACKED PLAIN, .starts_q = &starts_q.tensor, .starts_k = &starts_k.tensor
#define PAGED  PLAIN, .lengths = &lengths.tensor, .pages = &pages.tensor

enum { K_AT = 8192, V_AT = 16384, OUT_AT = 24576, LSE_AT = 32768, MASK_AT = 36864, TABLES = 49152 };

static void pieces(tn_dtype dtype)
{
    DENSE(&q, 0, dtype, 2, 6, 4, 8);
    DENSE(&k, K_AT, dtype, 2, 6, 5, 8);
    DENSE(&v, V_AT, dtype, 2, 6, 5, 8);
    DENSE(&out, OUT_AT, dtype, 2, 6, 4, 8);
    DENSE(&lse, LSE_AT, dtype == TN_F64 ? (tn_dtype)TN_F64 : (tn_dtype)TN_F32, 2, 6, 4);
    DENSE(&mask, MASK_AT, TN_BOOL, 2, 6, 4, 5);
    DENSE(&sinks, TABLES, dtype, 6);
}

/* Three sequences of 9 queries and 12 keys together. */
static void packed_pieces(void)
{
    DENSE(&q, 0, TN_F32, 6, 9, 8);
    DENSE(&k, K_AT, TN_F32, 6, 12, 8);
    DENSE(&v, V_AT, TN_F32, 6, 12, 8);
    DENSE(&out, OUT_AT, TN_F32, 6, 9, 8);
    DENSE(&lse, LSE_AT, TN_F32, 6, 9);
    DENSE(&starts_q, TABLES, TN_I32, 4);
    DENSE(&starts_k, TABLES + 64, TN_I32, 4);
    DENSE(&lengths, TABLES + 128, TN_I32, 3);
}

/* Seven pages of 4 keys; each of 2 sequences has up to 3 of them. */
static void paged_pieces(void)
{
    pieces(TN_F32);
    DENSE(&k, K_AT, TN_F32, 7, 6, 4, 8);
    DENSE(&v, V_AT, TN_F32, 7, 6, 4, 8);
    DENSE(&lengths, TABLES + 128, TN_I32, 2);
    DENSE(&pages, TABLES + 192, TN_I32, 2, 3);
}

static void plain_attention_uses_nothing(void **state)
{
    (void)state;
    pieces(TN_F32);
    const tn_op *op = MAKE(PLAIN);
    const tn_attention_op *at = tn_op_attention(op);
    assert_int_equal(op->kind, TN_OP_ATTENTION);
    assert_int_equal(op->count, TN_ATTENTION_OPERANDS);
    assert_int_equal(op->uses, 0);
    assert_true(at->batch == 2 && at->heads == 6 && at->groups == 6);
    assert_true(at->queries == 4 && at->keys == 5 && at->size == 8 && at->value_size == 8);
    assert_true(at->page == 0 && at->left == -1 && at->right == -1 && at->shift == 0);
    assert_true(at->scale == 1 / sqrt(8) && at->softcap == 0 && at->dropout == 0);
    expect_layout(&op->operand[TN_ATTENTION_Q], TN_F32, LIST(2, 6, 4, 8, -1),
                  LIST(192, 32, 8, 1, -1));
    expect_layout(&op->operand[TN_ATTENTION_V], TN_F32, LIST(2, 6, 5, 8, -1),
                  LIST(240, 40, 8, 1, -1));
    for (int32_t i = TN_ATTENTION_LSE; i < op->count; i++)
        assert_int_equal(op->operand[i].dtype, TN_DTYPE_NONE);
    assert_ptr_equal(problem.data[TN_ATTENTION_OUT], memory + OUT_AT);
    assert_null(problem.data[TN_ATTENTION_LSE]);
    assert_string_equal(tn_device_id(problem.device), "cpu:0");
    assert_string_equal(round_trip(op), "attention:f32:b=2,h=6,lq=4,lk=5,d=8");
    double flops, bytes;
    tni_attention_class.cost(op, &flops, &bytes);
    assert_true(flops == 4.0 * 2 * 6 * 4 * 5 * 8);
    assert_true(bytes == 4.0 * 2 * 6 * 8 * (4 + 5 + 5 + 4));
}

/* The way in which tensors lie is in their strides, and in nothing else. */
static void layouts_are_strides(void **state)
{
    tn_op straight, turned;
    (void)state;
    pieces(TN_F32);
    DENSE(&q, 0, TN_F32, 2, 4, 6, 8);
    DENSE(&k, K_AT, TN_F32, 2, 5, 6, 8);
    DENSE(&v, V_AT, TN_F32, 2, 5, 6, 8);
    DENSE(&out, OUT_AT, TN_F32, 2, 4, 6, 8);
    turned = *MAKE(PLAIN, .layout = TN_LAYOUT_BLHD);
    assert_int_equal(turned.uses, 0);
    expect_layout(&turned.operand[TN_ATTENTION_Q], TN_F32, LIST(2, 6, 4, 8, -1),
                  LIST(192, 8, 48, 1, -1));
    assert_string_equal(round_trip(&turned), "attention:f32:b=2,h=6,lq=4,lk=5,d=8,layout=blhd");
    piece_at(&q, 0, TN_F32, LIST(2, 6, 4, 8, -1), LIST(192, 8, 48, 1, -1));
    piece_at(&k, K_AT, TN_F32, LIST(2, 6, 5, 8, -1), LIST(240, 8, 48, 1, -1));
    piece_at(&v, V_AT, TN_F32, LIST(2, 6, 5, 8, -1), LIST(240, 8, 48, 1, -1));
    piece_at(&out, OUT_AT, TN_F32, LIST(2, 6, 4, 8, -1), LIST(192, 8, 48, 1, -1));
    straight = *MAKE(PLAIN);
    assert_true(same_op(&straight, &turned));
    piece_at(&k, K_AT, TN_F32, LIST(2, 6, 5, 8, -1), LIST(0, 40, 1, 5, -1));
    assert_int_equal(MAKE(PLAIN)->uses, TN_ATTENTION_USES_STRIDES);
}

static void packed_sequences_have_one_batch(void **state)
{
    (void)state;
    packed_pieces();
    const tn_op *op = MAKE(PACKED, .lse = &lse.tensor, .max_queries = 4, .max_keys = 5);
    const tn_attention_op *at = TN_PARAMS(op, attention);
    assert_int_equal(op->uses, TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LSE);
    assert_true(at->batch == 3 && at->heads == 6 && at->queries == 4 && at->keys == 5);
    expect_layout(&op->operand[TN_ATTENTION_Q], TN_F32, LIST(1, 6, 9, 8, -1),
                  LIST(1, 72, 8, 1, -1));
    expect_layout(&op->operand[TN_ATTENTION_LSE], TN_F32, LIST(1, 6, 9, -1), LIST(1, 9, 1, -1));
    expect_layout(&op->operand[TN_ATTENTION_STARTS_K], TN_I32, LIST(4, -1), LIST(1, -1));
    assert_string_equal(round_trip(op), "attention:f32:h=6,varlen=2x4;1,varlenk=2x5;2,d=8,lse=1");
    op = MAKE(PACKED, .lengths = &lengths.tensor);
    assert_int_equal(op->uses, TN_ATTENTION_USES_PACKED | TN_ATTENTION_USES_LENGTHS);
    assert_true(TN_PARAMS(op, attention)->queries == 9 && TN_PARAMS(op, attention)->keys == 12);
    assert_string_equal(round_trip(op),
                        "attention:f32:h=6,varlen=1x9;2x0,varlenk=1x12;2x0,d=8,used=1");
    op = MAKE(PACKED, .max_queries = 2, .max_keys = 3); /* the longest do not fill all rows */
    assert_true(TN_PARAMS(op, attention)->queries == 2 && TN_PARAMS(op, attention)->keys == 3);
    assert_string_equal(round_trip(op),
                        "attention:f32:h=6,varlen=3x2,rows=9,varlenk=3x3,rowsk=12,d=8");
    op = MAKE(PACKED, .max_queries = 3, .max_keys = 1);
    assert_string_equal(round_trip(op), "attention:f32:h=6,varlen=3x3,varlenk=3x1,rowsk=12,d=8");
    DENSE(&q, 0, TN_F32, 9, 6, 8);
    DENSE(&k, K_AT, TN_F32, 12, 6, 8);
    DENSE(&v, V_AT, TN_F32, 12, 6, 8);
    DENSE(&out, OUT_AT, TN_F32, 9, 6, 8);
    op = MAKE(PACKED, .layout = TN_LAYOUT_BLHD);
    expect_layout(&op->operand[TN_ATTENTION_K], TN_F32, LIST(1, 6, 12, 8, -1),
                  LIST(1, 8, 48, 1, -1));
    assert_contains(round_trip(op), "layout=blhd");
}

static void pages_have_keys(void **state)
{
    (void)state;
    paged_pieces();
    const tn_op *op = MAKE(PAGED);
    assert_int_equal(op->uses, TN_ATTENTION_USES_PAGES | TN_ATTENTION_USES_LENGTHS);
    assert_true(TN_PARAMS(op, attention)->page == 4 && TN_PARAMS(op, attention)->keys == 12);
    assert_true(TN_PARAMS(op, attention)->batch == 2 && TN_PARAMS(op, attention)->queries == 4);
    expect_layout(&op->operand[TN_ATTENTION_K], TN_F32, LIST(7, 6, 4, 8, -1),
                  LIST(192, 32, 8, 1, -1));
    assert_string_equal(round_trip(op), "attention:f32:b=2,h=6,lq=4,lk=12,d=8,page=4,pool=7");
    DENSE(&q, 0, TN_F32, 6, 3, 8);
    DENSE(&out, OUT_AT, TN_F32, 6, 3, 8);
    DENSE(&starts_q, TABLES, TN_I32, 3);
    op = MAKE(PAGED, .starts_q = &starts_q.tensor);
    assert_int_equal(op->uses, TN_ATTENTION_USES_PAGES | TN_ATTENTION_USES_LENGTHS |
                                   TN_ATTENTION_USES_PACKED);
    expect_layout(&op->operand[TN_ATTENTION_Q], TN_F32, LIST(1, 6, 3, 8, -1),
                  LIST(1, 24, 8, 1, -1));
    assert_int_equal(op->operand[TN_ATTENTION_K].shape[0], 7);
    assert_string_equal(round_trip(op), "attention:f32:h=6,varlen=1x3;1x0,lk=12,d=8,page=4,pool=7");
    DENSE(&q, 0, TN_F32, 2, 4, 6, 8);
    DENSE(&out, OUT_AT, TN_F32, 2, 4, 6, 8);
    DENSE(&k, K_AT, TN_F32, 7, 4, 6, 8);
    DENSE(&v, V_AT, TN_F32, 7, 4, 6, 8);
    op = MAKE(PAGED, .layout = TN_LAYOUT_BLHD);
    expect_layout(&op->operand[TN_ATTENTION_V], TN_F32, LIST(7, 6, 4, 8, -1),
                  LIST(192, 8, 48, 1, -1));
    assert_true(TN_PARAMS(op, attention)->page == 4 && TN_PARAMS(op, attention)->keys == 12);
}

static void expect_window(const tn_op *op, int64_t left, int64_t right, int32_t corner,
                          const char *text)
{
    assert_true(TN_PARAMS(op, attention)->left == left && TN_PARAMS(op, attention)->right == right);
    assert_int_equal(TN_PARAMS(op, attention)->corner, corner);
    assert_int_equal(op->uses, left < 0 && right < 0 ? 0 : TN_ATTENTION_USES_WINDOW);
    char whole[128];
    snprintf(whole, sizeof whole, "attention:f32:b=2,h=6,lq=4,lk=5,d=8%s", text);
    assert_string_equal(round_trip(op), whole);
}

static void masks_of_places_are_windows(void **state)
{
    (void)state;
    pieces(TN_F32);
    expect_window(MAKE(PLAIN, .window_left = -1, .window_right = -1), -1, -1, TN_CORNER_TOP_LEFT,
                  "");
    expect_window(MAKE(PLAIN, .mask = TN_MASK_CAUSAL), -1, 0, TN_CORNER_TOP_LEFT, ",mask=causal");
    expect_window(MAKE(PLAIN, .mask = TN_MASK_CAUSAL_BR), -1, 0, TN_CORNER_BOTTOM_RIGHT,
                  ",mask=causal-br");
    expect_window(MAKE(PLAIN, .mask = TN_MASK_WINDOW), 0, 0, TN_CORNER_BOTTOM_RIGHT,
                  ",mask=window:0;0");
    expect_window(MAKE(PLAIN, .mask = TN_MASK_WINDOW, .window_left = 3, .window_right = -1), 3, -1,
                  TN_CORNER_BOTTOM_RIGHT, ",mask=window:3;-1");
    expect_window(MAKE(PLAIN, .mask = TN_MASK_WINDOW, .window_left = -1), -1, 0,
                  TN_CORNER_BOTTOM_RIGHT, ",mask=causal-br");
    expect_window(MAKE(PLAIN, .mask = TN_MASK_WINDOW, .window_left = INT64_MAX), INT64_MAX, 0,
                  TN_CORNER_BOTTOM_RIGHT, ",mask=window:9223372036854775807;0");
    /* Without a bound there is no corner. */
    expect_window(MAKE(PLAIN, .mask = TN_MASK_WINDOW, .window_left = -1, .window_right = -1), -1,
                  -1, TN_CORNER_TOP_LEFT, "");
}

static void mask_tensors_broadcast(void **state)
{
    (void)state;
    pieces(TN_BF16);
    const tn_op *op = MAKE(PLAIN, .mask_tensor = &mask.tensor);
    assert_int_equal(op->uses, TN_ATTENTION_USES_MASK);
    assert_string_equal(round_trip(op), "attention:bf16:b=2,h=6,lq=4,lk=5,d=8,mask=bool");
    op = MAKE(PLAIN, .mask_tensor = DENSE(&mask, MASK_AT, TN_BOOL, 2, 1, 1, 5));
    expect_layout(&op->operand[TN_ATTENTION_MASK], TN_BOOL, LIST(2, 6, 4, 5, -1),
                  LIST(5, 0, 0, 1, -1));
    assert_string_equal(round_trip(op), "attention:bf16:b=2,h=6,lq=4,lk=5,d=8,mask=padding");
    op = MAKE(PLAIN, .mask_tensor = DENSE(&mask, MASK_AT, TN_BF16, 4, 5), .mask = TN_MASK_CAUSAL);
    assert_int_equal(op->uses, TN_ATTENTION_USES_ADDITIVE | TN_ATTENTION_USES_WINDOW);
    expect_layout(&op->operand[TN_ATTENTION_MASK], TN_BF16, LIST(2, 6, 4, 5, -1),
                  LIST(0, 0, 5, 1, -1));
    assert_string_equal(round_trip(op), "attention:bf16:b=2,h=6,lq=4,lk=5,d=8,"
                                        "mask=causal;additive,smask=0;0;5;1");
    op = MAKE(PLAIN, .mask_tensor = DENSE(&mask, MASK_AT, TN_F32, 2, 6, 4, 5));
    assert_string_equal(round_trip(op),
                        "attention:bf16:b=2,h=6,lq=4,lk=5,d=8,mask=additive,mdtype=f32");
}

static void scale_has_a_default(void **state)
{
    (void)state;
    pieces(TN_F32);
    assert_true(TN_PARAMS(MAKE(PLAIN, .scale = 0.5), attention)->scale == 0.5);
    assert_contains(round_trip(&problem.op), ",scale=0.5");
    assert_true(TN_PARAMS(MAKE(PLAIN, .set = TN_ATTENTION_SET_SCALE), attention)->scale == 0);
    assert_contains(round_trip(&problem.op), ",scale=0");
    assert_true(
        TN_PARAMS(MAKE(PLAIN, .scale = -2, .set = TN_ATTENTION_SET_SCALE), attention)->scale == -2);
}

static void what_is_used_is_said(void **state)
{
    (void)state;
    pieces(TN_F16);
    assert_int_equal(MAKE(PLAIN, .softcap = 30)->uses, TN_ATTENTION_USES_SOFTCAP);
    assert_int_equal(
        MAKE(PLAIN, .dropout = 0.25, .seed = UINT64_C(1) << 63, .offset = UINT64_MAX)->uses,
        TN_ATTENTION_USES_DROPOUT);
    assert_contains(round_trip(&problem.op), "dropout=0.25,seed=9223372036854775808,"
                                             "offset=18446744073709551615");
    const tn_op *op = MAKE(PLAIN, .dropout = 0.25, .seed = 3, .offset = 4,
                           .seed_tensor = DENSE(&seed, TABLES + 256, TN_I64, 2));
    assert_int_equal(op->uses, TN_ATTENTION_USES_DROPOUT | TN_ATTENTION_USES_SEED);
    assert_true(TN_PARAMS(op, attention)->seed == 0 && TN_PARAMS(op, attention)->offset == 0);
    assert_contains(round_trip(op), ",dropout=0.25,seed=device");
    const tn_attention_args older = {.struct_size = TN_UP_TO(tn_attention_args, workspace_bytes),
                                     PLAIN,
                                     .dropout = 0.25,
                                     .seed = 3,
                                     .seed_tensor = &seed.tensor};
    assert_int_equal(make(&older)->uses, TN_ATTENTION_USES_DROPOUT);
    REFUSED(TN_INVALID_ARGUMENT, "seed_tensor: expected i64 for q of f16, got i32", PLAIN,
            .seed_tensor = DENSE(&seed, TABLES + 256, TN_I32, 2));
    REFUSED(TN_INVALID_ARGUMENT, "seed_tensor: expected 2, seed and offset, got 3", PLAIN,
            .seed_tensor = DENSE(&seed, TABLES + 256, TN_I64, 3));
    REFUSED(TN_INVALID_ARGUMENT, "seed_tensor: expected stride 1, got 2", PLAIN,
            .seed_tensor = piece_at(&seed, TABLES + 256, TN_I64, LIST(2, -1), LIST(2, -1)));
    assert_int_equal(MAKE(PLAIN, .sinks = &sinks.tensor)->uses, TN_ATTENTION_USES_SINKS);
    assert_contains(round_trip(&problem.op), ",sink=1");
    assert_int_equal(MAKE(PLAIN, .sinks = DENSE(&sinks, TABLES, TN_F32, 6))->uses,
                     TN_ATTENTION_USES_SINKS);
    assert_contains(round_trip(&problem.op), ",sink=f32");
    DENSE(&lengths, TABLES + 128, TN_I32, 2);
    assert_int_equal(MAKE(PLAIN, .lengths = &lengths.tensor)->uses, TN_ATTENTION_USES_LENGTHS);
    DENSE(&k, K_AT, TN_F16, 2, 2, 5, 8);
    DENSE(&v, V_AT, TN_F16, 2, 2, 5, 3);
    DENSE(&out, OUT_AT, TN_F32, 2, 6, 4, 3);
    assert_int_equal(MAKE(PLAIN)->uses, TN_ATTENTION_USES_GROUPS | TN_ATTENTION_USES_VALUE_SIZE |
                                            TN_ATTENTION_USES_OUT_DTYPE);
    assert_string_equal(round_trip(&problem.op),
                        "attention:f16:b=2,h=6,hk=2,lq=4,lk=5,d=8,dv=3,out=f32");
}

static void gradients_and_parts(void **state)
{
    piece dout, dq, dk, dv;
    (void)state;
    pieces(TN_F64);
    DENSE(&dout, TABLES, TN_F64, 2, 6, 4, 8);
    DENSE(&dq, TABLES + 4096, TN_F64, 2, 6, 4, 8);
    DENSE(&dk, TABLES + 8192, TN_F64, 2, 6, 5, 8);
    DENSE(&dv, TABLES + 12288, TN_F64, 2, 6, 5, 8);
    const tn_op *op =
        MAKE_BACK(PLAIN, .lse = &lse.tensor, .mask_tensor = &mask.tensor, .dout = &dout.tensor,
                  .dq = &dq.tensor, .dk = &dk.tensor, .dv = &dv.tensor, .mask = TN_MASK_CAUSAL_BR);
    assert_int_equal(op->kind, TN_OP_ATTENTION_BACKWARD);
    assert_int_equal(op->count, TN_ATTENTION_BACKWARD_OPERANDS);
    assert_int_equal(op->uses, TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK);
    expect_layout(&op->operand[TN_ATTENTION_BACKWARD_DK], TN_F64, LIST(2, 6, 5, 8, -1),
                  LIST(240, 40, 8, 1, -1));
    assert_string_equal(round_trip(op),
                        "attention-backward:f64:b=2,h=6,lq=4,lk=5,d=8,mask=causal-br;bool");
    for (int32_t i = TN_ATTENTION_BACKWARD_SINKS; i <= TN_ATTENTION_BACKWARD_SEED; i++)
        assert_int_equal(op->operand[i].dtype, TN_DTYPE_NONE);
    tn_op again;
    parse("attention:f64:backward=1,b=2,h=6,lq=4,lk=5,d=8,mask=causal-br;bool", &again);
    assert_true(same_op(&again, &problem.op));
    REFUSED_BACK("dk: expected 5, the length of k, got 4", PLAIN, .lse = &lse.tensor,
                 .dout = &dout.tensor, .dq = &dq.tensor,
                 .dk = DENSE(&dk, TABLES + 8192, TN_F64, 2, 6, 4, 8), .dv = &dv.tensor);
    DENSE(&dk, TABLES + 8192, TN_F64, 2, 6, 5, 8);
    assert_int_equal(MAKE_BACK(PLAIN, .lse = &lse.tensor, .dout = &dout.tensor, .dq = &dq.tensor,
                               .dk = &dk.tensor, .dv = &dv.tensor, .dropout = 0.5,
                               .seed_tensor = DENSE(&seed, TABLES + 16384, TN_I64, 2))
                         ->uses,
                     TN_ATTENTION_USES_DROPOUT | TN_ATTENTION_USES_SEED);
    REFUSED_BACK("lse: the tensor is NULL", PLAIN, .dout = &dout.tensor, .dq = &dq.tensor,
                 .dk = &dk.tensor, .dv = &dv.tensor);
    REFUSED_BACK("dv shares memory with dk, which is written while it is too", PLAIN,
                 .lse = &lse.tensor, .dout = &dout.tensor, .dq = &dq.tensor, .dk = &dv.tensor,
                 .dv = &dv.tensor);

    op = MAKE_MERGE(.in = &q.tensor, .lse_in = &lse.tensor, .other = &dout.tensor,
                    .lse_other = &lse.tensor, .out = &out.tensor);
    assert_int_equal(op->count, TN_MERGE_OPERANDS);
    assert_int_equal(op->uses, 0);
    assert_true(TN_PARAMS(op, elementwise)->rows == 48 && TN_PARAMS(op, elementwise)->size == 8 &&
                TN_PARAMS(op, elementwise)->elements == 384);
    assert_string_equal(round_trip(op), "attention-merge:f64:b=2,h=6,l=4,d=8");
    op = MAKE_MERGE(.in = DENSE(&q, 0, TN_F64, 2, 4, 6, 8), .lse_in = &lse.tensor,
                    .other = &q.tensor, .lse_other = &lse.tensor,
                    .out = DENSE(&out, OUT_AT, TN_F64, 2, 4, 6, 8), .layout = TN_LAYOUT_BLHD);
    assert_int_equal(op->uses, TN_ELEMENTWISE_USES_STRIDES);
    assert_string_equal(round_trip(op), "attention-merge:f64:b=2,h=6,l=4,d=8,layout=blhd");
    pieces(TN_F64);
    REFUSED_MERGE("other: dimension 2: expected 4, the size of in, got 5", .in = &q.tensor,
                  .lse_in = &lse.tensor, .other = &k.tensor, .lse_other = &lse.tensor,
                  .out = &out.tensor);
    REFUSED_MERGE("lse_in: expected 3 dimensions, got 4", .in = &q.tensor, .lse_in = &dout.tensor,
                  .other = &q.tensor, .lse_other = &lse.tensor, .out = &out.tensor);
    REFUSED_MERGE("out: expected f16 or f32 for in of f16, got f64",
                  .in = DENSE(&q, 0, TN_F16, 2, 6, 4, 8),
                  .lse_in = DENSE(&lse, LSE_AT, TN_F32, 2, 6, 4), .other = &q.tensor,
                  .lse_other = &lse.tensor, .out = &out.tensor);
}

static void arguments_are_checked(void **state)
{
    tn_attention_args args = {.struct_size = TN_UP_TO(tn_attention_args, workspace_bytes) - 1};
    tn_error err;
    (void)state;
    pieces(TN_F32);
    assert_int_equal(tni_attention_make(NULL, &problem, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "args is NULL");
    refused(&args, TN_INVALID_ARGUMENT, "args->struct_size: expected at least");
    refused(&args, TN_INVALID_ARGUMENT, "; make args with TN_ARGS(attention, ...)");
    REFUSED(TN_INVALID_ARGUMENT, "k: the tensor is NULL", .q = &q.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "args->set has bits", PLAIN, .set = 2);
    REFUSED(TN_INVALID_ARGUMENT, "backend: expected 0 (any) to 15, got 16", PLAIN, .backend = 16);
    REFUSED(TN_INVALID_ARGUMENT, "backend: expected 0 (any) to 15, got -1", PLAIN,
            .backend = TN_BACKEND_AUTOMATIC);
    REFUSED(TN_INVALID_ARGUMENT, "mask: expected 0 (none) to 3, got 4", PLAIN, .mask = 4);
    REFUSED(TN_INVALID_ARGUMENT, "layout: expected 0 (bhld) or 1 (blhd), got -1", PLAIN,
            .layout = -1);
    REFUSED(TN_INVALID_ARGUMENT,
            "window_left: expected 0 or -1 for mask 1, got 7; use mask 3 (window)", PLAIN,
            .mask = TN_MASK_CAUSAL, .window_left = 7);
    REFUSED(TN_INVALID_ARGUMENT, "window_right: expected 0 or -1 for mask 0, got -2", PLAIN,
            .window_right = -2);
    REFUSED(TN_INVALID_ARGUMENT, "window_left: expected -1 or more, got -2", PLAIN,
            .mask = TN_MASK_WINDOW, .window_left = -2);
    REFUSED(TN_INVALID_ARGUMENT, "window_right: expected -1 or more, got -5", PLAIN,
            .mask = TN_MASK_WINDOW, .window_right = -5);
    REFUSED(TN_INVALID_ARGUMENT, "scale: expected a finite number, got inf", PLAIN,
            .scale = INFINITY);
    REFUSED(TN_INVALID_ARGUMENT, "softcap: expected a finite number of at least 0, got -1", PLAIN,
            .softcap = -1);
    REFUSED(TN_INVALID_ARGUMENT, "dropout: expected a number of at least 0 and below 1, got 1",
            PLAIN, .dropout = 1);
    REFUSED(TN_INVALID_ARGUMENT, "dropout: expected a number", PLAIN, .dropout = NAN);
    REFUSED(TN_INVALID_ARGUMENT, "max_queries: expected 0 without starts_q, got 4", PLAIN,
            .max_queries = 4);
    REFUSED(TN_INVALID_ARGUMENT, "max_keys: expected 0 without starts_q, got 4", PLAIN,
            .max_keys = 4);
    REFUSED(TN_INVALID_ARGUMENT, "k shares memory with out", .q = &q.tensor, .k = &out.tensor,
            .v = &v.tensor, .out = &out.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "lse shares memory with out", PLAIN,
            .lse = DENSE(&lse, OUT_AT + 4, TN_F32, 2, 6, 4));
    out.tensor.flags = TN_TENSOR_READ_ONLY;
    REFUSED(TN_REFUSED, "out", PLAIN);
}

static void dtypes_are_checked(void **state)
{
    (void)state;
    pieces(TN_I8);
    REFUSED(TN_UNSUPPORTED, "q: expected f64, f32, f16 or bf16, got i8", PLAIN);
    pieces(TN_F16);
    REFUSED(TN_INVALID_ARGUMENT, "v: expected f16 for q of f16, got bf16", .q = &q.tensor,
            .k = &k.tensor, .v = DENSE(&v, V_AT, TN_BF16, 2, 6, 5, 8), .out = &out.tensor);
    pieces(TN_F16);
    REFUSED(TN_INVALID_ARGUMENT, "out: expected f16 or f32 for q of f16, got f64", .q = &q.tensor,
            .k = &k.tensor, .v = &v.tensor, .out = DENSE(&out, OUT_AT, TN_F64, 2, 6, 4, 8));
    pieces(TN_F16);
    REFUSED(TN_INVALID_ARGUMENT, "lse: expected f32 for q of f16, got f16", PLAIN,
            .lse = DENSE(&lse, LSE_AT, TN_F16, 2, 6, 4));
    REFUSED(TN_INVALID_ARGUMENT, "mask_tensor: expected bool or f16 or f32 for q of f16, got u8",
            PLAIN, .mask_tensor = DENSE(&mask, MASK_AT, TN_U8, 2, 6, 4, 5));
    REFUSED(TN_INVALID_ARGUMENT, "sinks: expected f16 or f32 for q of f16, got f64", PLAIN,
            .sinks = DENSE(&sinks, TABLES, TN_F64, 6));
    pieces(TN_F64);
    MAKE(PLAIN, .sinks = DENSE(&sinks, TABLES, TN_F32, 6), .lse = &lse.tensor);
    paged_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "pages: expected i32 for q of f32, got i64", PLAIN,
            .lengths = &lengths.tensor, .pages = DENSE(&pages, TABLES + 192, TN_I64, 2, 3));
}

static void shapes_are_checked(void **state)
{
    (void)state;
    pieces(TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "q: expected 4 dimensions, got 3",
            .q = DENSE(&q, 0, TN_F32, 6, 4, 8), .k = &k.tensor, .v = &v.tensor, .out = &out.tensor);
    pieces(TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "k: expected 8, the head size of q, got 7", .q = &q.tensor,
            .k = DENSE(&k, K_AT, TN_F32, 2, 6, 5, 7), .v = &v.tensor, .out = &out.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "v: expected 6, the length of k, got 5", .q = &q.tensor,
            .k = DENSE(&k, K_AT, TN_F32, 2, 6, 6, 8), .v = &v.tensor, .out = &out.tensor);
    pieces(TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "out: expected 3, the head size of v, got 8", .q = &q.tensor,
            .k = &k.tensor, .v = DENSE(&v, V_AT, TN_F32, 2, 6, 5, 3), .out = &out.tensor);
    pieces(TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "lse: expected 4, the length of q, got 5", PLAIN,
            .lse = DENSE(&lse, LSE_AT, TN_F32, 2, 6, 5));
    REFUSED(TN_INVALID_ARGUMENT, "q: expected a multiple of the 4 heads of k and v, got 6",
            .q = &q.tensor, .k = DENSE(&k, K_AT, TN_F32, 2, 4, 5, 8),
            .v = DENSE(&v, V_AT, TN_F32, 2, 4, 5, 8), .out = &out.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "k: expected 2, the batch of q, got 3", .q = &q.tensor,
            .k = DENSE(&k, K_AT, TN_F32, 3, 6, 5, 8), .v = DENSE(&v, V_AT, TN_F32, 3, 6, 5, 8),
            .out = &out.tensor);
    pieces(TN_F32);
    REFUSED(TN_INVALID_ARGUMENT, "mask_tensor: dimension 1: expected 5, or 1 to serve all, got 4",
            PLAIN, .mask_tensor = DENSE(&mask, MASK_AT, TN_BOOL, 5, 4));
    REFUSED(TN_INVALID_ARGUMENT, "sinks: expected 6, the heads of q, got 5", PLAIN,
            .sinks = DENSE(&sinks, TABLES, TN_F32, 5));
}

static void sequences_are_checked(void **state)
{
    (void)state;
    packed_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "starts_q: expected starts_k or pages too, got starts_q alone",
            PLAIN, .starts_q = &starts_q.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "starts_k: expected starts_q too, got starts_k alone", PLAIN,
            .starts_k = &starts_k.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "starts_q: expected at least 2 numbers, got 1", PLAIN,
            .starts_q = DENSE(&starts_q, TABLES, TN_I32, 1), .starts_k = &starts_q.tensor);
    packed_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "starts_k: expected 4, as many as starts_q, got 3", PLAIN,
            .starts_q = &starts_q.tensor, .starts_k = DENSE(&starts_k, TABLES, TN_I32, 3));
    packed_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "lengths: expected 3, one for each sequence, got 2", PACKED,
            .lengths = DENSE(&lengths, TABLES, TN_I32, 2));
    REFUSED(TN_INVALID_ARGUMENT, "q, packed: expected 3 dimensions, got 4",
            .q = DENSE(&q, 0, TN_F32, 1, 6, 9, 8), .k = &k.tensor, .v = &v.tensor,
            .out = &out.tensor, .starts_q = &starts_q.tensor, .starts_k = &starts_k.tensor);
    packed_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "max_queries: expected 1 to 9 for sequences in 9 rows, got 10",
            PACKED, .max_queries = 10, .max_keys = 12);
    REFUSED(TN_INVALID_ARGUMENT, "max_keys: expected 1 to 12 for sequences in 12 rows, got 13",
            PACKED, .max_keys = 13);
    REFUSED(TN_INVALID_ARGUMENT, "max_keys: expected 1 to 12", PACKED, .max_keys = -1);
    REFUSED(TN_UNSUPPORTED, "mask_tensor: expected none for packed or paged sequences, got one",
            PACKED, .mask_tensor = DENSE(&mask, MASK_AT, TN_BOOL, 1));
    paged_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "pages: expected lengths too, got pages alone", PLAIN,
            .pages = &pages.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "pages: expected 2, a row for each sequence, got 3", PLAIN,
            .lengths = &lengths.tensor, .pages = DENSE(&pages, TABLES + 192, TN_I32, 3, 3));
    paged_pieces();
    REFUSED(TN_INVALID_ARGUMENT, "starts_k: expected none with pages, got both", PAGED,
            .starts_q = DENSE(&starts_q, TABLES, TN_I32, 3), .starts_k = &starts_q.tensor);
    REFUSED(TN_INVALID_ARGUMENT, "max_keys: expected 0 with pages, got 9", PAGED,
            .starts_q = &starts_q.tensor, .max_keys = 9);
    REFUSED(TN_INVALID_ARGUMENT, "k: expected at least 1 key in each page, got 0", .q = &q.tensor,
            .k = DENSE(&k, K_AT, TN_F32, 7, 6, 0, 8), .v = DENSE(&v, V_AT, TN_F32, 7, 6, 0, 8),
            .out = &out.tensor, .lengths = &lengths.tensor, .pages = &pages.tensor);
    REFUSED(
        TN_INVALID_ARGUMENT,
        "pages: expected at most 4611686018427387903 keys for each sequence, got 576460752303423488 pages of",
        .q = &q.tensor, .out = &out.tensor, .lengths = &lengths.tensor,
        .k = piece_at(&k, K_AT, TN_F32, LIST(7, 6, 32, 8, -1), LIST(0, 0, 8, 1, -1)),
        .v = piece_at(&v, V_AT, TN_F32, LIST(7, 6, 32, 8, -1), LIST(0, 0, 8, 1, -1)),
        .pages = piece_at(&pages, TABLES, TN_I32, LIST(2, INT64_C(1) << 59, -1), LIST(0, 0, -1)));
}

/* Whether one plan serves both. */
static bool same_plan(const tn_op *a, const tn_op *b, uint64_t dims)
{
    uint64_t x[TNI_KEY_MOST], y[TNI_KEY_MOST];
    tn_op one, other;
    tni_op_free(a, dims, &one);
    tni_op_free(b, dims, &other);
    size_t count = tni_op_key(&one, x);
    return tni_op_key(&other, y) == count && memcmp(x, y, count * sizeof x[0]) == 0;
}

static void plans_serve_free_dimensions(void **state)
{
    tn_op small, great;
    const uint64_t all = TN_ATTENTION_DIM_BATCH | TN_ATTENTION_DIM_HEADS |
                         TN_ATTENTION_DIM_QUERIES | TN_ATTENTION_DIM_KEYS;
    (void)state;
    parse("attention:f32:b=1,h=2,lq=3,lk=4,d=8,mask=bool,lse=1", &small);
    parse("attention:f32:b=9,h=8,hk=8,lq=30,lk=40,d=8,mask=bool,lse=1", &great);
    assert_true(same_plan(&small, &great, all));
    for (uint64_t dim = 1; dim <= all; dim *= 2)
        assert_false(same_plan(&small, &great, all & ~dim));
    /* Of packed sequences only their tables show how many there are. */
    parse("attention:f32:h=2,varlen=2x4,d=8", &small);
    parse("attention:f32:h=2,varlen=2x4;3x0,d=8", &great);
    assert_true(same_plan(&small, &great, all));
    assert_false(same_plan(&small, &great, all & ~(uint64_t)TN_ATTENTION_DIM_BATCH));
}

/* Kernels refuse numbers that leave the range of scores, so these must not share the plan of others. */
static void plans_do_not_serve_extreme_numbers(void **state)
{
    static const char *const extremes[] = {"scale=1e39", "scale=-1e39", "scale=1e-39",
                                           "softcap=1e39", "softcap=1e-39"};
    tn_op usual, other;
    (void)state;
    parse("attention:f32:b=1,h=2,l=3,d=8,softcap=5", &usual);
    parse("attention:f32:b=1,h=2,l=3,d=8,softcap=50,scale=0.1", &other);
    assert_true(same_plan(&usual, &other, 0));
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        char text[128];
        const bool capped = extremes[i][1] == 'o';
        snprintf(text, sizeof text, "attention:f32:b=1,h=2,l=3,d=8,%s%s", extremes[i],
                 capped ? "" : ",softcap=5");
        parse(text, &other);
        assert_false(same_plan(&usual, &other, 0));
    }
}

/* Kernels may be compiled for scales that keep the order of scores. */
static void plans_of_positive_scales_serve_no_others(void **state)
{
    tn_op usual, negative, other, zero;
    (void)state;
    parse("attention:f32:b=1,h=2,l=3,d=8,scale=2", &usual);
    parse("attention:f32:b=1,h=2,l=3,d=8,scale=-2", &negative);
    parse("attention:f32:b=1,h=2,l=3,d=8,scale=-0.1", &other);
    zero = negative;
    TN_PARAMS_MUTABLE(&zero, attention)->scale = 0;
    assert_false(same_plan(&usual, &negative, 0));
    assert_false(same_plan(&usual, &zero, 0));
    assert_true(same_plan(&negative, &other, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_attention_uses_nothing),
        cmocka_unit_test(layouts_are_strides),
        cmocka_unit_test(packed_sequences_have_one_batch),
        cmocka_unit_test(pages_have_keys),
        cmocka_unit_test(masks_of_places_are_windows),
        cmocka_unit_test(mask_tensors_broadcast),
        cmocka_unit_test(scale_has_a_default),
        cmocka_unit_test(what_is_used_is_said),
        cmocka_unit_test(gradients_and_parts),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(dtypes_are_checked),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(sequences_are_checked),
        cmocka_unit_test(plans_serve_free_dimensions),
        cmocka_unit_test(plans_do_not_serve_extreme_numbers),
        cmocka_unit_test(plans_of_positive_scales_serve_no_others),
    };
    return run_suite("unit.ops_attention", tests);
}
