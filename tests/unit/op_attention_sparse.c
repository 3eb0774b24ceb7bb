/* attention-sparse: what tensors and arguments make of it, what is refused, and that calls give what attention with a
 * mask gives.
 *
 * unit.stack: OPERATOR(attention_sparse, .q = &q, .k = &k, .v = &v, .out = &attended, .block_mask = &every_block, .block_queries = 32, .block_keys = 32) */
#include "ops_elementwise.h"

static piece q, k, v, out, lse, mask, starts, blocks, sizes, order;

#define PLAIN  .q = &q.tensor, .k = &k.tensor, .v = &v.tensor, .out = &out.tensor
#define MASKED PLAIN, .block_mask = &mask.tensor, .block_queries = 3, .block_keys = 2
#define LISTED \
    PLAIN, .starts = &starts.tensor, .blocks = &blocks.tensor, .block_queries = 3, .block_keys = 2

/* b = 2, h = 6, lq = 4, lk = 5, d = 8, apart from each other: two by three blocks. */
static void make_pieces(void)
{
    (void)DENSE(&q, 0, TN_F32, 2, 6, 4, 8);
    (void)DENSE(&k, 4096, TN_F32, 2, 6, 5, 8);
    (void)DENSE(&v, 8192, TN_F32, 2, 6, 5, 8);
    (void)DENSE(&out, 12288, TN_F32, 2, 6, 4, 8);
    (void)DENSE(&lse, 16384, TN_F32, 2, 6, 4);
    (void)DENSE(&mask, 20480, TN_BOOL, 2, 6, 2, 3);
    (void)DENSE(&starts, 24576, TN_I32, 2, 6, 3);
    (void)DENSE(&blocks, 28672, TN_I32, 17);
    (void)DENSE(&sizes, 32768, TN_I32, 2, 3);
}

/* Queries and keys of five tokens, and three blocks of two slots. */
#define ORDERED                                                            \
    .q = DENSE(&q, 0, TN_F32, 2, 6, 5, 8), .k = &k.tensor, .v = &v.tensor, \
    .out = DENSE(&out, 12288, TN_F32, 2, 6, 5, 8), .block_queries = 2,     \
    .block_mask = DENSE(&mask, 20480, TN_BOOL, 3, 3), .block_keys = 2
#define SIZED ORDERED, .block_sizes = &sizes.tensor

static const tn_attention_sparse_op *sparse_of(const tn_op *op)
{
    return TN_PARAMS(op, attention_sparse);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    make_pieces();
    CHECK_ARGS(attention_sparse);
    REFUSED(attention_sparse, "args->reserved has bits", MASKED, .reserved = 1);
    REFUSED(attention_sparse, "k: the tensor is NULL", .q = &q.tensor, .v = &v.tensor,
            .out = &out.tensor);
    REFUSED(attention_sparse, "expected either block_mask, or starts and blocks, got none of them",
            PLAIN, .block_queries = 3, .block_keys = 2);
    REFUSED(attention_sparse, "got block_mask and starts and blocks", MASKED,
            .starts = &starts.tensor, .blocks = &blocks.tensor);
    REFUSED(attention_sparse, "starts and blocks, got starts", PLAIN, .starts = &starts.tensor,
            .block_queries = 3, .block_keys = 2);
    REFUSED(attention_sparse, "block_queries: expected at least 1, got 0", PLAIN,
            .block_mask = &mask.tensor, .block_keys = 2);
    REFUSED(attention_sparse, "block_keys: expected at least 1, got -2", PLAIN,
            .block_mask = &mask.tensor, .block_queries = 3, .block_keys = -2);
    REFUSED(attention_sparse, "mask: expected 0 (none) to 3, got 4", MASKED, .mask = 4);
    REFUSED(attention_sparse, "layout: expected 0 (bhld) or 1 (blhd), got 2", MASKED, .layout = 2);
    REFUSED(attention_sparse, "scale: expected a finite number, got inf", MASKED,
            .scale = (double)INFINITY);
    REFUSED(attention_sparse, "block_mask: expected bool for q of f32, got i32", PLAIN,
            .block_mask = DENSE(&mask, 20480, TN_I32, 2, 6, 2, 3), .block_queries = 3,
            .block_keys = 2);
    make_pieces();
    REFUSED(attention_sparse, "block_mask: ", PLAIN,
            .block_mask = DENSE(&mask, 20480, TN_BOOL, 2, 6, 2, 4), .block_queries = 3,
            .block_keys = 2);
    make_pieces();
    (void)DENSE(&starts, 24576, TN_I32, 2, 6, 4);
    REFUSED(attention_sparse, "starts: ", LISTED);
    make_pieces();
    REFUSED(attention_sparse, "block_sizes: expected i32 for q of f32, got f32", MASKED,
            .block_sizes = DENSE(&sizes, 32768, TN_F32, 2, 3));
    make_pieces();
    (void)DENSE(&k, 4096, TN_F32, 2, 6, 5, 7);
    REFUSED(attention_sparse, "k: expected 8, the head size of q, got 7", MASKED);
    make_pieces();
    REFUSED(attention_sparse, "q: expected a multiple of the 4 heads of k and v, got 6",
            .q = &q.tensor, .k = DENSE(&k, 4096, TN_F32, 2, 4, 5, 8),
            .v = DENSE(&v, 8192, TN_F32, 2, 4, 5, 8), .out = &out.tensor,
            .block_mask = &mask.tensor, .block_queries = 3, .block_keys = 2);
    UNSUPPORTED(attention_sparse, "q: expected f64, f32, f16 or bf16, got i32",
                .q = DENSE(&q, 0, TN_I32, 2, 6, 4, 8), .k = &k.tensor, .v = &v.tensor,
                .out = &out.tensor, .block_mask = &mask.tensor, .block_queries = 3,
                .block_keys = 2);
    expect_refused("attention-sparse:f32:h=1,l=4,d=4", "bq is missing");
    expect_refused("attention-sparse:f32:h=1,d=4,bq=2", "lq is missing");
    expect_refused("attention-sparse:f32:h=1,l=4,d=4,bq=0", "bq");
    expect_refused("attention-sparse:f32:h=1,l=4,d=4,bq=2,sizes=2", "sizes: expected 0 or 1");
    expect_refused("attention-sparse:f32:h=1,l=4,d=4,bq=2,mask=bool",
                   "mask: expected none, causal");
}

static void orders_are_checked(void **state)
{
    (void)state;
    make_pieces();
    (void)DENSE(&order, 36864, TN_I32, 6);
    REFUSED(attention_sparse, "block_keys: expected 3, block_queries, with order; got 2",
            .q = &q.tensor, .k = DENSE(&k, 4096, TN_F32, 2, 6, 4, 8),
            .v = DENSE(&v, 8192, TN_F32, 2, 6, 4, 8), .out = &out.tensor,
            .block_mask = &mask.tensor, .block_queries = 3, .block_keys = 2,
            .order = &order.tensor);
    make_pieces();
    REFUSED(attention_sparse, "k: expected 4, the queries of q, with order; got 5", MASKED,
            .order = &order.tensor);
    make_pieces();
    REFUSED(attention_sparse, "mask: expected none with order, got one", SIZED,
            .order = &order.tensor, .mask = TN_MASK_CAUSAL);
    REFUSED(attention_sparse, "order: expected at least 5 slots, one for each token of q; got 4",
            SIZED, .order = DENSE(&order, 36864, TN_I32, 4));
    REFUSED(attention_sparse,
            "order: expected 5 slots, one for each token of q, without block_sizes; got 6", ORDERED,
            .order = DENSE(&order, 36864, TN_I32, 6));
    REFUSED(attention_sparse, "order: expected the dimensions [batch, slots] or [slots], got none",
            SIZED, .order = piece_at(&order, 36864, TN_I32, LIST(-1), NULL));
    REFUSED(attention_sparse, "order: ", SIZED, .order = DENSE(&order, 36864, TN_I32, 3, 6));
    REFUSED(attention_sparse, "order: expected i32 for q of f32, got i64", SIZED,
            .order = DENSE(&order, 36864, TN_I64, 6));
    TEXT(attention_sparse,
         "attention-sparse:f32:b=2,h=6,l=5,d=8,bq=2,sizes=1,slots=6,smask=0;0;3;1,sorder=0;1",
         SIZED, .order = DENSE(&order, 36864, TN_I32, 6));
    assert_int_equal(problem.op.uses, TN_ATTENTION_SPARSE_USES_MASK |
                                          TN_ATTENTION_SPARSE_USES_SIZES |
                                          TN_ATTENTION_SPARSE_USES_ORDER);
    expect_refused("attention-sparse:f32:h=1,l=4,d=4,bq=2,slots=5", "order: expected 4 slots");
    expect_refused("attention-sparse:f32:h=1,lq=4,lk=5,d=4,bq=2,slots=5", "k: expected 4");
}

static void problems_have_a_text(void **state)
{
    (void)state;
    make_pieces();
    const tn_op *op = MAKE(attention_sparse, MASKED);
    assert_true(op->kind == TN_OP_ATTENTION_SPARSE && op->count == TN_ATTENTION_SPARSE_OPERANDS);
    assert_int_equal(op->uses, TN_ATTENTION_SPARSE_USES_MASK);
    assert_true(sparse_of(op)->query_blocks == 2 && sparse_of(op)->key_blocks == 3);
    assert_true(sparse_of(op)->at.scale == 1 / sqrt(8));
    assert_string_equal(round_trip(op), "attention-sparse:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2");
    TEXT(attention_sparse, "attention-sparse:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2,entries=17",
         LISTED);
    assert_int_equal(problem.op.uses, TN_ATTENTION_SPARSE_USES_LISTS);
    TEXT(
        attention_sparse,
        "attention-sparse:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2,mask=causal-br,sizes=1,lse=1,scale=0.5",
        MASKED, .mask = TN_MASK_CAUSAL_BR, .block_sizes = &sizes.tensor, .lse = &lse.tensor,
        .scale = 0.5);
    assert_int_equal(problem.op.uses,
                     TN_ATTENTION_SPARSE_USES_MASK | TN_ATTENTION_SPARSE_USES_WINDOW |
                         TN_ATTENTION_SPARSE_USES_SIZES | TN_ATTENTION_SPARSE_USES_LSE);
    TEXT(attention_sparse,
         "attention-sparse:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2,mask=window:2;1,smask=0;0;3;1",
         PLAIN, .block_mask = DENSE(&mask, 20480, TN_BOOL, 2, 3), .block_queries = 3,
         .block_keys = 2, .mask = TN_MASK_WINDOW, .window_left = 2, .window_right = 1);
    TEXT(attention_sparse,
         "attention-sparse:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2,entries=17,sstarts=0;0;1", PLAIN,
         .starts = DENSE(&starts, 24576, TN_I32, 3), .blocks = &blocks.tensor, .block_queries = 3,
         .block_keys = 2);
    tn_op said;
    parse("attention-sparse:bf16:h=4,hk=2,l=9,d=8,dv=4,bq=4,layout=blhd,out=f32", &said);
    assert_string_equal(round_trip(&said),
                        "attention-sparse:bf16:b=1,h=4,hk=2,l=9,d=8,dv=4,bq=4,layout=blhd,out=f32");
    assert_int_equal(said.uses, TN_ATTENTION_SPARSE_USES_MASK | TN_ATTENTION_SPARSE_USES_GROUPS |
                                    TN_ATTENTION_SPARSE_USES_VALUE_SIZE |
                                    TN_ATTENTION_SPARSE_USES_OUT_DTYPE);
}

/* Numbers of a call: whole ones in eighths, so that products are exact. */
enum { HEADS = 2, LENGTH = 45, SIZE = 24, QUERIES = 16, KEYS = 10, ROWS = 3, COLUMNS = 5 };
static float numbers[4][HEADS * LENGTH * SIZE], found[HEADS * LENGTH * SIZE];
static uint8_t listed[HEADS * ROWS * COLUMNS], seen[HEADS * LENGTH * LENGTH];

static void roll_numbers(void)
{
    for (int n = 0; n < 3; n++) {
        for (int i = 0; i < HEADS * LENGTH * SIZE; i++)
            numbers[n][i] = (float)roll(-16, 16) / 8;
    }
    for (int i = 0; i < HEADS * ROWS * COLUMNS; i++)
        listed[i] = (uint8_t)roll(0, 1);
    for (int i = 0; i < HEADS * LENGTH * LENGTH; i++) {
        const int row = i / LENGTH % LENGTH / QUERIES, column = i % LENGTH / KEYS;
        seen[i] = listed[(i / LENGTH / LENGTH * ROWS + row) * COLUMNS + column];
    }
}

static const tn_tensor *tensor_of(piece *p, void *data, tn_dtype dtype, const int64_t *shape)
{
    (void)piece_at(p, 0, dtype, shape, NULL);
    p->tensor.data = data;
    return &p->tensor;
}

static void calls_give_what_a_mask_gives(void **state)
{
    (void)state;
    static const int64_t shape[] = {1, HEADS, LENGTH, SIZE, -1};
    static const int32_t masks[] = {TN_MASK_NONE, TN_MASK_CAUSAL, TN_MASK_CAUSAL_BR};
    piece full, block;
    for (int turn = 0; turn < 12; turn++) {
        tn_error err = {0};
        roll_numbers();
        const tn_tensor *tq = tensor_of(&q, numbers[0], TN_F32, shape);
        const tn_tensor *tk = tensor_of(&k, numbers[1], TN_F32, shape);
        const tn_tensor *tv = tensor_of(&v, numbers[2], TN_F32, shape);
        const tn_tensor *to = tensor_of(&out, numbers[3], TN_F32, shape);
        const tn_tensor *dense =
            tensor_of(&full, seen, TN_BOOL, LIST(1, HEADS, LENGTH, LENGTH, -1));
        const tn_tensor *sparse =
            tensor_of(&block, listed, TN_BOOL, LIST(HEADS, ROWS, COLUMNS, -1));
        if (tn_attention(NULL,
                         TN_ARGS(attention, .q = tq, .k = tk, .v = tv, .out = to,
                                 .mask_tensor = dense, .mask = masks[turn % 3]),
                         &err))
            fail_msg("%s", err.message);
        if (tn_attention_sparse(NULL,
                                TN_ARGS(attention_sparse, .q = tq, .k = tk, .v = tv,
                                        .out = tensor_of(&out, found, TN_F32, shape),
                                        .block_mask = sparse, .block_queries = QUERIES,
                                        .block_keys = KEYS, .mask = masks[turn % 3]),
                                &err))
            fail_msg("%s", err.message);
        for (int i = 0; i < HEADS * LENGTH * SIZE; i++)
            assert_true(fabsf(found[i] - numbers[3][i]) <= 1e-5F);
    }
}

/* Tokens in the order of the slots and tokens that are copied into this order have the same bits. */
static void an_order_replaces_copies(void **state)
{
    (void)state;
    static const int64_t shape[] = {1, HEADS, LENGTH, SIZE, -1};
    static float copies[3][HEADS * LENGTH * SIZE], copied[HEADS * LENGTH * SIZE];
    static int32_t tokens[LENGTH];
    piece block, table;
    tn_error err = {0};
    roll_numbers();
    for (int32_t i = 0; i < LENGTH; i++)
        tokens[i] = (i * 26 + 7) % LENGTH;
    for (int n = 0; n < 3; n++) {
        for (int i = 0; i < HEADS * LENGTH; i++)
            memcpy(&copies[n][(size_t)i * SIZE],
                   &numbers[n][(size_t)(i / LENGTH * LENGTH + tokens[i % LENGTH]) * SIZE],
                   SIZE * sizeof(float));
    }
    const tn_tensor *list = tensor_of(&block, listed, TN_BOOL, LIST(HEADS, ROWS, ROWS, -1));
    for (int ordered = 0; ordered < 2; ordered++) {
        float(*from)[HEADS * LENGTH * SIZE] = ordered ? numbers : copies;
        if (tn_attention_sparse(
                NULL,
                TN_ARGS(attention_sparse, .q = tensor_of(&q, from[0], TN_F32, shape),
                        .k = tensor_of(&k, from[1], TN_F32, shape),
                        .v = tensor_of(&v, from[2], TN_F32, shape),
                        .out = tensor_of(&out, ordered ? found : copied, TN_F32, shape),
                        .block_mask = list, .block_queries = QUERIES, .block_keys = QUERIES,
                        .order =
                            ordered ? tensor_of(&table, tokens, TN_I32, LIST(LENGTH, -1)) : NULL),
                &err))
            fail_msg("%s", err.message);
    }
    for (int i = 0; i < HEADS * LENGTH; i++)
        assert_memory_equal(&copied[(size_t)i * SIZE],
                            &found[(size_t)(i / LENGTH * LENGTH + tokens[i % LENGTH]) * SIZE],
                            SIZE * sizeof(float));
}

static void calls_are_explained_and_prepared(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_decision *decision = NULL;
    make_pieces();
    assert_int_equal(tn_attention_sparse_prepare(NULL, TN_ARGS(attention_sparse, MASKED), &err),
                     TN_OK);
    assert_int_equal(
        tn_attention_sparse_explain(NULL, TN_ARGS(attention_sparse, MASKED), &decision, &err),
        TN_OK);
    tn_decision_release(decision);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(orders_are_checked),
        cmocka_unit_test(problems_have_a_text),
        cmocka_unit_test(calls_give_what_a_mask_gives),
        cmocka_unit_test(an_order_replaces_copies),
        cmocka_unit_test(calls_are_explained_and_prepared),
    };
    return run_suite("unit.op_attention_sparse", tests);
}
