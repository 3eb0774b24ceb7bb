/* Sequences of attention that tables tell of: packed, in pages, with lengths. Each has the bits that it has
 * alone, and what is wrong with a table is said in words. */
#include "attention_make.h"

static const tn_dtype floats[] = {TN_F64, TN_F32, TN_F16, TN_BF16};

/* Rows of an operand, heads by length by size, from one place in another. */
static void assert_rows_equal(const call *c, const head *at, const call *alone)
{
    const head whole = head_of(alone, 0, at->h);
    for (int32_t o = TN_ATTENTION_OUT; o <= TN_ATTENTION_LSE; o++) {
        int64_t size = o == TN_ATTENTION_OUT ? TN_PARAMS(&c->op, attention)->value_size : 1;
        for (int64_t e = 0; e < at->queries * size; e++)
            assert_memory_equal(
                element_at(&c->o[o], query_index(c, o, at, e / size, e % size)),
                element_at(&alone->o[o], query_index(alone, o, &whole, e / size, e % size)),
                (size_t)bytes_of(c->o[o].layout.dtype));
    }
}

/* One sequence of an op as an op of its own: dense, and without tables. */
static call alone_of(const call *c, int64_t b)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const head first = head_of(c, b, 0);
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    call alone = call_of(dtype, 1, at->heads, at->groups, first.queries, first.keys, at->size,
                         at->value_size);
    TN_PARAMS_MUTABLE(&alone.op, attention)->left = at->left;
    TN_PARAMS_MUTABLE(&alone.op, attention)->right = at->right;
    TN_PARAMS_MUTABLE(&alone.op, attention)->corner = at->corner;
    TN_PARAMS_MUTABLE(&alone.op, attention)->shift = at->shift;
    for (int64_t h = 0; h < at->heads; h++) {
        const head in = head_of(c, b, h), to = head_of(&alone, 0, h);
        for (int64_t e = 0; e < in.queries * at->size; e++) {
            const int64_t i = e / at->size, d = e % at->size;
            memcpy(element_at(&alone.o[TN_ATTENTION_Q],
                              query_index(&alone, TN_ATTENTION_Q, &to, i, d)),
                   element_at(&c->o[TN_ATTENTION_Q], query_index(c, TN_ATTENTION_Q, &in, i, d)),
                   (size_t)bytes_of(dtype));
        }
        for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
            const int64_t size = c->o[o].layout.shape[3];
            for (int64_t e = 0; e < in.keys * size; e++)
                memcpy(element_at(&alone.o[o], key_index(&alone, o, &to, e / size, e % size)),
                       element_at(&c->o[o], key_index(c, o, &in, e / size, e % size)),
                       (size_t)bytes_of(dtype));
        }
    }
    return alone;
}

/* Packed, in pages, with lengths: each sequence has the bits that it has alone. */
static void sequences_are_as_alone(void **state)
{
    (void)state;
    for (int turn = 0; turn < 90; turn++) {
        call c = call_of(floats[turn % 4], 3, 4, 2, 20, 30, 5, 6);
        const bool paged = turn % 3 == 1, packed = turn % 3 != 1 || dice(2);
        roll_window(TN_PARAMS_MUTABLE(&c.op, attention));
        if (paged)
            roll_pages(&c);
        if (packed)
            roll_packed(&c, paged);
        if (paged || turn % 3 == 2)
            roll_lengths(&c);
        for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++)
            call_lay(&c, o, (int)dice(REPEATED));
        call_compute(&c, 2);
        for (int64_t b = 0; b < 3; b++) {
            call alone = alone_of(&c, b);
            if (TN_PARAMS(&alone.op, attention)->queries > 0)
                call_compute(&alone, 1);
            for (int64_t h = 0; h < 4; h++) {
                const head in = head_of(&c, b, h);
                assert_rows_equal(&c, &in, &alone);
            }
            call_drop(&alone);
        }
        call_drop(&c);
    }
}

static void assert_refused(call *c, const char *message)
{
    tn_error err = {0};
    assert_int_equal(call_run(c, 2, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.where, "cpu.attention.ref");
    assert_string_equal(err.message, message);
    assert_untouched(c);
}

/* Three sequences; every table is right but for one entry. */
static void tables_are_checked(void **state)
{
    const int64_t four[] = {4}, three[] = {3};
    (void)state;
    call c = call_of(TN_F32, 3, 1, 1, 4, 5, 2, 2);
    operand *q = &c.o[TN_ATTENTION_STARTS_Q], *k = &c.o[TN_ATTENTION_STARTS_K];
    operand *lengths = &c.o[TN_ATTENTION_LENGTHS];
    *q = make(TN_I32, 1, four, DENSE);
    *k = make(TN_I32, 1, four, SPREAD);
    *lengths = make(TN_I32, 1, three, REVERSED);
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++) {
        c.o[o].layout.shape[0] = 1;
        c.o[o].layout.shape[2] = o == TN_ATTENTION_K || o == TN_ATTENTION_V ? 11 : 9;
        call_lay(&c, o, DENSE);
    }
    for (int64_t b = 0; b < 4; b++) {
        put_i32(q, b, 3 * b);
        put_i32(k, b, 3 * b);
        if (b < 3)
            put_i32(lengths, b, b);
    }
    call_compute(&c, 1);
    call_lay(&c, TN_ATTENTION_OUT, DENSE);
    put_i32(q, 0, -1);
    assert_refused(&c, "starts_q[0]: expected 0 to 9, got -1");
    put_i32(q, 0, 0);
    put_i32(q, 2, 2);
    assert_refused(&c, "starts_q[2]: expected 3 to 7, got 2");
    put_i32(q, 2, 8);
    assert_refused(&c, "starts_q[2]: expected 3 to 7, got 8");
    put_i32(q, 2, 6);
    put_i32(q, 3, 10);
    assert_refused(&c, "starts_q[3]: expected 6 to 9, got 10");
    put_i32(q, 3, 9);
    put_i32(k, 3, INT32_MIN);
    assert_refused(&c, "starts_k[3]: expected 6 to 11, got -2147483648");
    put_i32(k, 3, 9);
    put_i32(lengths, 1, 4);
    assert_refused(&c, "lengths[1]: expected 0 to 3, got 4");
    put_i32(lengths, 1, -1);
    assert_refused(&c, "lengths[1]: expected 0 to 3, got -1");
    call_drop(&c);
}

/* Of pages whose keys no query sees, the table may have anything. */
static void pages_are_checked(void **state)
{
    const int64_t shape[] = {2, 4}, two[] = {2};
    (void)state;
    call c = call_of(TN_F32, 2, 1, 1, 3, 16, 2, 2);
    operand *pages = &c.o[TN_ATTENTION_PAGES], *lengths = &c.o[TN_ATTENTION_LENGTHS];
    TN_PARAMS_MUTABLE(&c.op, attention)->page = 4;
    *pages = make(TN_I32, 2, shape, TURNED);
    *lengths = make(TN_I32, 1, two, DENSE);
    for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
        c.o[o].layout.shape[0] = 5;
        c.o[o].layout.shape[2] = 4;
        call_lay(&c, o, DENSE);
    }
    for (int64_t n = 0; n < 8; n++)
        put_i32(pages, n, n % 5);
    put_i32(lengths, 0, 16);
    put_i32(lengths, 1, 8);
    put_i32(pages, 6, -1); /* beyond the length */
    call_compute(&c, 1);
    call_lay(&c, TN_ATTENTION_OUT, DENSE);
    put_i32(pages, 5, 5);
    assert_refused(&c, "pages[1][1]: expected 0 to 4, got 5");
    put_i32(pages, 5, -1);
    assert_refused(&c, "pages[1][1]: expected 0 to 4, got -1");
    put_i32(pages, 5, 0);
    TN_PARAMS_MUTABLE(&c.op, attention)->left =
        3; /* the last queries see keys from 10 and from 2 on */
    TN_PARAMS_MUTABLE(&c.op, attention)->right = 0;
    TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
    put_i32(pages, 0, 77);
    put_i32(pages, 1, -77);
    call_compute(&c, 1);
    call_lay(&c, TN_ATTENTION_OUT, DENSE);
    put_i32(pages, 2, 99);
    assert_refused(&c, "pages[0][2]: expected 0 to 4, got 99");
    put_i32(pages, 0, 0);
    put_i32(pages, 4, 1);
    TN_PARAMS_MUTABLE(&c.op, attention)->corner =
        TN_CORNER_TOP_LEFT; /* and now keys 0 to 2 of both */
    call_compute(&c, 1);
    call_drop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_as_alone),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(pages_are_checked),
    };
    return run_suite("kernels.ref_attention_tables", tests);
}
