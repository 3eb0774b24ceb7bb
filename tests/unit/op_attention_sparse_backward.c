/* attention-sparse-backward: what tensors and arguments make of it, what is refused, and that calls give what
 * attention-backward with a mask gives.
 *
 * unit.stack: OPERATOR(attention_sparse_backward, .q = &q, .k = &k, .v = &v, .out = &attended, .lse = &lse, .dout = &k, .dq = &gradient_q, .dk = &gradient_k, .dv = &gradient_v, .block_mask = &every_block, .block_queries = 32, .block_keys = 32) */
#include "ops_elementwise.h"

static piece q, k, v, out, lse, mask, starts, blocks, sizes, dout, dq, dk, dv;

#define OPERANDS                                                                            \
    .q = &q.tensor, .k = &k.tensor, .v = &v.tensor, .out = &out.tensor, .lse = &lse.tensor, \
    .dout = &dout.tensor, .dq = &dq.tensor, .dk = &dk.tensor, .dv = &dv.tensor
#define MASKED OPERANDS, .block_mask = &mask.tensor, .block_queries = 3, .block_keys = 2
#define LISTED                                                                        \
    OPERANDS, .starts = &starts.tensor, .blocks = &blocks.tensor, .block_queries = 3, \
              .block_keys = 2

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
    (void)DENSE(&dout, 36864, TN_F32, 2, 6, 4, 8);
    (void)DENSE(&dq, 40960, TN_F32, 2, 6, 4, 8);
    (void)DENSE(&dk, 45056, TN_F32, 2, 6, 5, 8);
    (void)DENSE(&dv, 49152, TN_F32, 2, 6, 5, 8);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    make_pieces();
    CHECK_ARGS(attention_sparse_backward);
    REFUSED(attention_sparse_backward, "args->reserved has bits", MASKED, .reserved = 1);
    REFUSED(attention_sparse_backward, "lse: the tensor is NULL", .q = &q.tensor, .k = &k.tensor,
            .v = &v.tensor, .out = &out.tensor, .dout = &dout.tensor, .dq = &dq.tensor,
            .dk = &dk.tensor, .dv = &dv.tensor);
    REFUSED(attention_sparse_backward,
            "expected either block_mask, or starts and blocks, got none of them", OPERANDS,
            .block_queries = 3, .block_keys = 2);
    REFUSED(attention_sparse_backward, "got block_mask and starts and blocks", MASKED,
            .starts = &starts.tensor, .blocks = &blocks.tensor);
    REFUSED(attention_sparse_backward, "block_queries: expected at least 1, got 0", OPERANDS,
            .block_mask = &mask.tensor, .block_keys = 2);
    REFUSED(attention_sparse_backward, "mask: expected 0 (none) to 3, got 4", MASKED, .mask = 4);
    REFUSED(attention_sparse_backward, "layout: expected 0 (bhld) or 1 (blhd), got 2", MASKED,
            .layout = 2);
    REFUSED(attention_sparse_backward, "block_sizes: expected i32 for q of f32, got f32", MASKED,
            .block_sizes = DENSE(&sizes, 32768, TN_F32, 2, 3));
    make_pieces();
    (void)DENSE(&dk, 45056, TN_F32, 2, 6, 4, 8);
    REFUSED(attention_sparse_backward, "dk: expected 5, the length of k, got 4", MASKED);
    make_pieces();
    (void)DENSE(&dout, 36864, TN_F32, 2, 6, 4);
    REFUSED(attention_sparse_backward, "dout: expected 4 dimensions, got 3", MASKED);
    make_pieces();
    (void)DENSE(&dq, 40960, TN_F64, 2, 6, 4, 4);
    REFUSED(attention_sparse_backward, "dq: expected f32 for q of f32, got f64", MASKED);
    make_pieces();
    (void)DENSE(&starts, 24576, TN_I32, 2, 6, 4);
    REFUSED(attention_sparse_backward, "starts: ", LISTED);
    make_pieces();
    expect_refused("attention-sparse-backward:f32:h=1,l=4,d=4", "bq is missing");
    expect_refused("attention-sparse-backward:f32:h=1,l=4,d=4,bq=2,lse=1", "lse");
    expect_refused("attention-sparse-backward:f32:h=1,l=4,d=4,bq=0", "bq");
}

static void problems_have_a_text(void **state)
{
    (void)state;
    make_pieces();
    const tn_op *op = MAKE(attention_sparse_backward, MASKED);
    assert_true(op->kind == TN_OP_ATTENTION_SPARSE_BACKWARD);
    assert_int_equal(op->count, TN_ATTENTION_SPARSE_BACKWARD_OPERANDS);
    assert_int_equal(op->uses, TN_ATTENTION_SPARSE_USES_MASK);
    assert_string_equal(round_trip(op),
                        "attention-sparse-backward:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2");
    TEXT(attention_sparse_backward,
         "attention-sparse-backward:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2,entries=17", LISTED);
    assert_int_equal(problem.op.uses, TN_ATTENTION_SPARSE_USES_LISTS);
    TEXT(attention_sparse_backward,
         "attention-sparse-backward:f32:b=2,h=6,lq=4,lk=5,d=8,bq=3,bk=2,mask=causal-br,sizes=1,"
         "scale=0.5",
         MASKED, .mask = TN_MASK_CAUSAL_BR, .block_sizes = &sizes.tensor, .scale = 0.5);
    tn_op said;
    parse("attention-sparse-backward:bf16:h=4,hk=2,l=9,d=8,dv=4,bq=4,layout=blhd,out=f32", &said);
    assert_string_equal(
        round_trip(&said),
        "attention-sparse-backward:bf16:b=1,h=4,hk=2,l=9,d=8,dv=4,bq=4,layout=blhd,out=f32");
    assert_int_equal(said.uses, TN_ATTENTION_SPARSE_USES_MASK | TN_ATTENTION_SPARSE_USES_GROUPS |
                                    TN_ATTENTION_SPARSE_USES_VALUE_SIZE |
                                    TN_ATTENTION_SPARSE_USES_OUT_DTYPE);
    parse("attention-sparse-backward:f32:b=2,h=2,l=9,d=24,bq=4,sdq=864;432;48;2", &said);
    assert_string_equal(round_trip(&said),
                        "attention-sparse-backward:f32:b=2,h=2,l=9,d=24,bq=4,sdq=864;432;48;2");
    assert_int_equal(said.uses, TN_ATTENTION_SPARSE_USES_MASK | TN_ATTENTION_SPARSE_USES_STRIDES);
}

/* Numbers of a call: whole ones in eighths. */
enum { HEADS = 2, LENGTH = 45, SIZE = 24, QUERIES = 16, KEYS = 10, ROWS = 3, COLUMNS = 5 };
enum { NUMBERS = HEADS * LENGTH * SIZE, TENSORS = 5, GRADIENTS = 3 };
static float numbers[TENSORS][NUMBERS], sums[HEADS * LENGTH], found[2][GRADIENTS][NUMBERS];
static uint8_t listed[HEADS * ROWS * COLUMNS], seen[HEADS * LENGTH * LENGTH];

static void roll_numbers(void)
{
    for (int n = 0; n < TENSORS; n++) {
        for (int i = 0; i < NUMBERS; i++)
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

#define TENSORS_OF_CALL                                                                           \
    .q = tensor_of(&q, numbers[0], TN_F32, shape), .k = tensor_of(&k, numbers[1], TN_F32, shape), \
    .v = tensor_of(&v, numbers[2], TN_F32, shape),                                                \
    .out = tensor_of(&out, numbers[3], TN_F32, shape), .lse = tensor_of(&lse, sums, TN_F32, rows)
#define GRADIENTS_OF_CALL(which)                          \
    .dout = tensor_of(&dout, numbers[4], TN_F32, shape),  \
    .dq = tensor_of(&dq, found[which][0], TN_F32, shape), \
    .dk = tensor_of(&dk, found[which][1], TN_F32, shape), \
    .dv = tensor_of(&dv, found[which][2], TN_F32, shape)

static void calls_give_what_a_mask_gives(void **state)
{
    (void)state;
    static const int64_t shape[] = {1, HEADS, LENGTH, SIZE, -1}, rows[] = {1, HEADS, LENGTH, -1};
    static const int32_t masks[] = {TN_MASK_NONE, TN_MASK_CAUSAL, TN_MASK_CAUSAL_BR};
    piece full, block;
    for (int turn = 0; turn < 12; turn++) {
        tn_error err = {0};
        roll_numbers();
        const tn_tensor *dense =
            tensor_of(&full, seen, TN_BOOL, LIST(1, HEADS, LENGTH, LENGTH, -1));
        const tn_tensor *sparse =
            tensor_of(&block, listed, TN_BOOL, LIST(HEADS, ROWS, COLUMNS, -1));
        if (tn_attention_sparse(NULL,
                                TN_ARGS(attention_sparse, TENSORS_OF_CALL, .block_mask = sparse,
                                        .block_queries = QUERIES, .block_keys = KEYS,
                                        .mask = masks[turn % 3]),
                                &err) ||
            tn_attention_sparse_backward(NULL,
                                         TN_ARGS(attention_sparse_backward, TENSORS_OF_CALL,
                                                 GRADIENTS_OF_CALL(0), .block_mask = sparse,
                                                 .block_queries = QUERIES, .block_keys = KEYS,
                                                 .mask = masks[turn % 3]),
                                         &err) ||
            tn_attention_backward(NULL,
                                  TN_ARGS(attention_backward, TENSORS_OF_CALL, GRADIENTS_OF_CALL(1),
                                          .mask_tensor = dense, .mask = masks[turn % 3]),
                                  &err))
            fail_msg("%s", err.message);
        for (int n = 0; n < GRADIENTS; n++) {
            for (int i = 0; i < NUMBERS; i++)
                assert_true(fabsf(found[0][n][i] - found[1][n][i]) <= 1e-4F);
        }
    }
}

static void calls_are_explained_and_prepared(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_decision *decision = NULL;
    make_pieces();
    assert_int_equal(tn_attention_sparse_backward_prepare(
                         NULL, TN_ARGS(attention_sparse_backward, MASKED), &err),
                     TN_OK);
    assert_int_equal(tn_attention_sparse_backward_explain(
                         NULL, TN_ARGS(attention_sparse_backward, MASKED), &decision, &err),
                     TN_OK);
    tn_decision_release(decision);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(problems_have_a_text),
        cmocka_unit_test(calls_give_what_a_mask_gives),
        cmocka_unit_test(calls_are_explained_and_prepared),
    };
    return run_suite("unit.op_attention_sparse_backward", tests);
}
