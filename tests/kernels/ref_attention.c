/* attention of the reference kernels against its definition in long double, and what masks and odd numbers
 * do to it. */
#include "attention_make.h"

static const tn_dtype floats[] = {TN_F64, TN_F32, TN_F16, TN_BF16};

/* Most elements of a row here. */
enum { LONGEST = 256 };

static score_parts pair_score(const call *c, const head *at, int64_t i, int64_t j)
{
    const int64_t size = TN_PARAMS(&c->op, attention)->size;
    double q[LONGEST], k[LONGEST];
    assert_true(size <= LONGEST);
    for (int64_t d = 0; d < size; d++) {
        q[d] = (double)query_value(c, TN_ATTENTION_Q, at, i, d);
        k[d] = (double)key_value(c, TN_ATTENTION_K, at, j, d);
    }
    return score_of(c, at, i, j, q, k);
}

/* One row by definition: out, and lse. `*out_size` is how far both may be off, in roundings of a number near 1:
 * a score has as many as its product has terms, and goes into its own weight and into lse. */
static void row_of_attention(const call *c, const head *at, int64_t i, const float *numbers,
                             long double *out, long double *out_lse, long double *out_size)
{
    const tn_attention_op *op = TN_PARAMS(&c->op, attention);
    const long double steps = 2 * (long double)(op->size + 8);
    long double greatest = -(long double)INFINITY, sum = 0, size = 16, value = 1;
    for (int64_t j = 0; j < at->keys; j++) {
        if (is_seen(c, at, i, j)) {
            const score_parts s = pair_score(c, at, i, j);
            greatest = fmaxl(greatest, s.value);
            size = fmaxl(size, 16 * (fabsl(s.value) + fabsl(s.product)) + steps * s.terms);
        }
    }
    if (has(c, TN_ATTENTION_SINKS)) {
        long double sink = value_at(&c->o[TN_ATTENTION_SINKS], at->h, 0);
        greatest = fmaxl(greatest, sink);
        sum = expl(sink - greatest);
    }
    for (int64_t j = 0; j < at->keys; j++)
        sum += is_seen(c, at, i, j) ? expl(pair_score(c, at, i, j).value - greatest) : 0;
    *out_lse = sum > 0 ? greatest + logl(sum) : -(long double)INFINITY;
    for (int64_t d = 0; d < op->value_size; d++)
        out[d] = 0;
    for (int64_t j = 0; j < at->keys; j++) {
        if (!is_seen(c, at, i, j))
            continue;
        long double weight = expl(pair_score(c, at, i, j).value - *out_lse);
        weight *= op->dropout > 0 ? kept(op, numbers, at, i, j) : 1;
        for (int64_t d = 0; d < op->value_size; d++) {
            out[d] += weight * key_value(c, TN_ATTENTION_V, at, j, d);
            value = fmaxl(value, fabsl(key_value(c, TN_ATTENTION_V, at, j, d)));
        }
    }
    *out_size = (size + (long double)at->keys) * value / (1 - (long double)op->dropout);
}

/* Every row is what it is by definition, and nothing else was written. */
static void check(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const tn_dtype q = c->o[TN_ATTENTION_Q].layout.dtype;
    const operand *out = &c->o[TN_ATTENTION_OUT], *lse = &c->o[TN_ATTENTION_LSE];
    const long double u = q == TN_F64 ? 0x1p-64L : 0x1p-53L; /* of what it computes in */
    float *numbers = dropout_numbers(at);
    for (int64_t n = 0; n < at->batch * at->heads; n++) {
        const head in = head_of(c, n / at->heads, n % at->heads);
        for (int64_t i = 0; i < in.queries; i++) {
            long double want[LONGEST], want_lse, size;
            row_of_attention(c, &in, i, numbers, want, &want_lse, &size);
            for (int64_t d = 0; d < at->value_size; d++)
                assert_near(out->layout.dtype, query_value(c, TN_ATTENTION_OUT, &in, i, d), want[d],
                            u * size);
            if (lse->memory)
                assert_near(lse->layout.dtype, query_value(c, TN_ATTENTION_LSE, &in, i, 0),
                            want_lse, u * size);
        }
    }
    assert_outside_untouched(out);
    if (lse->memory)
        assert_outside_untouched(lse);
    free(numbers);
}

static void the_rule_of_places(void **state)
{
    (void)state;
    for (int turn = 0; turn < 3000; turn++) {
        tn_attention_op at = {.left = -1, .right = -1};
        const int64_t queries = 1 + (int64_t)dice(9), keys = (int64_t)dice(9);
        roll_window(&at);
        if (dice(9) == 0)
            at.left = INT64_MAX;
        if (dice(9) == 0)
            at.right = INT64_MAX;
        for (int64_t i = 0; i < queries; i++) {
            int64_t first, count = tn_attention_seen(&at, i, queries, keys, &first);
            tn_attention_op near_ones = at; /* whose sums do not wrap */
            near_ones.left = at.left > 99 ? 99 : at.left;
            near_ones.right = at.right > 99 ? 99 : at.right;
            for (int64_t j = -1; j <= keys; j++)
                assert_int_equal(j >= first && j < first + count,
                                 place_is_seen(&near_ones, i, j, queries, keys));
        }
    }
}

/* NaNs wherever no query may look: keys beyond the lengths and between sequences. */
static void poison_unused(call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
        const operand random = c->o[o];
        c->o[o] = make_poisoned(random.layout.dtype, 4, random.layout.shape, (int)dice(REPEATED));
        for (int64_t n = 0; n < at->batch * at->heads; n++) {
            const head in = head_of(c, n / at->heads, n % at->heads);
            const int64_t row = c->o[o].layout.shape[3];
            for (int64_t e = 0; e < in.keys * row; e++)
                store_random(random.layout.dtype,
                             element_at(&c->o[o], key_index(c, o, &in, e / row, e % row)));
        }
        free(random.memory);
    }
}

static call roll_call(void)
{
    const tn_dtype dtype = floats[dice(4)];
    const int64_t groups = 1 + (int64_t)dice(3), size = 1 + (int64_t)dice(11);
    call c = call_of(dtype, 1 + (int64_t)dice(3), groups * (1 + (int64_t)dice(3)), groups,
                     1 + (int64_t)dice(20), (int64_t)dice(24), size,
                     dice(2) ? size : 1 + (int64_t)dice(20));
    tn_attention_op *at = TN_PARAMS_MUTABLE(&c.op, attention);
    const bool paged = dice(4) == 0, packed = dice(4) == 0;
    if (dice(3) == 0)
        drop(&c.o[TN_ATTENTION_LSE]);
    if (dice(3) == 0 && dtype != TN_F64)
        c.o[TN_ATTENTION_OUT].layout.dtype = TN_F32;
    roll_window(at);
    roll_numbers(at);
    if (paged)
        roll_pages(&c);
    if (packed)
        roll_packed(&c, paged);
    if (!paged && !packed)
        roll_mask(&c);
    if (paged || dice(3) == 0)
        roll_lengths(&c);
    if (dice(3) == 0)
        c.o[TN_ATTENTION_SINKS] =
            make_random(dice(2) ? TN_F32 : dtype, 1, &at->heads, (int)dice(LAYOUTS));
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++) {
        if (c.o[o].memory)
            call_lay(&c, o, (int)dice(o >= TN_ATTENTION_OUT ? REPEATED : LAYOUTS));
    }
    if (dice(2))
        poison_unused(&c);
    return c;
}

static void any_op_is_its_definition(void **state)
{
    const int turns = test_reduced() ? 300 : test_full() ? 3000 : 500;
    (void)state;
    for (int turn = 0; turn < turns; turn++) {
        call c = roll_call();
        call_compute(&c, 1 + (int32_t)dice(4));
        check(&c);
        call_drop(&c);
    }
}

/* Sizes around those of blocks and views, rows longer than any piece, and nothing. */
static void sizes_at_edges(void **state)
{
    static const int64_t sizes[][4] = {{15, 63, 3, 200}, {16, 64, 4, 1},  {17, 65, 5, 4},
                                       {1, 130, 200, 3}, {33, 129, 7, 8}, {48, 1, 1, 1},
                                       {3, 4, 0, 2},     {3, 4, 2, 0},    {2, 0, 0, 0}};
    (void)state;
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        for (int turn = 0; turn < 4; turn++) {
            const int64_t *s = sizes[n];
            call c = call_of(floats[turn], 1, 2, 1, s[0], s[1], s[2], s[3]);
            roll_window(TN_PARAMS_MUTABLE(&c.op, attention));
            call_compute(&c, 3);
            check(&c);
            call_drop(&c);
        }
    }
}

static void copy_of(const call *from, call *out)
{
    *out = *from;
    for (int32_t o = 0; o < TN_OP_OPERANDS_MAX; o++) {
        if (!from->o[o].memory)
            continue;
        out->o[o].memory = malloc(from->o[o].size);
        assert_non_null(out->o[o].memory);
        memcpy(out->o[o].memory, from->o[o].memory, from->o[o].size);
        out->o[o].first = out->o[o].memory + (from->o[o].first - from->o[o].memory);
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    for (int turn = 0; turn < 20; turn++) {
        call one = call_of(floats[turn % 4], 2, 3, 3, 50, 70, 16, 8), many;
        roll_window(TN_PARAMS_MUTABLE(&one.op, attention));
        copy_of(&one, &many);
        call_compute(&one, 1);
        host_tasks = 0;
        host_pool = tn_parallel_for;
        call_compute(&many, 2 + turn % 7);
        host_pool = NULL;
        assert_int_equal(host_tasks, 2 + turn % 7);
        for (int32_t o = TN_ATTENTION_OUT; o <= TN_ATTENTION_LSE; o++)
            assert_memory_equal(one.o[o].memory, many.o[o].memory, one.o[o].size);
        call_drop(&one);
        call_drop(&many);
    }
}

/* With values that are the unit vectors, out is the weights: kept ones are greater, dropped ones 0. */
static void dropout_keeps_what_the_numbers_say(void **state)
{
    (void)state;
    for (int turn = 0; turn < 6; turn++) {
        call c = call_of(TN_F32, 2, 3, 3, 7, 31, 4, 31), plain, other;
        tn_attention_op *at = TN_PARAMS_MUTABLE(&c.op, attention);
        for (int64_t e = 0; e < elements_of(&c.o[TN_ATTENTION_V].layout); e++)
            put_number(&c.o[TN_ATTENTION_V], e, e / 31 % 31 == e % 31);
        copy_of(&c, &plain);
        at->dropout = turn == 0 ? 0x1p-24 : 0.1 * turn;
        at->seed = dice(UINT64_C(1) << 40) << 24 ^ dice(99);
        at->offset = turn % 2 ? UINT64_MAX - 5 : dice(1000);
        float *numbers = dropout_numbers(at);
        int64_t dropped = 0;
        if (turn == 5) /* what is one of the numbers itself is kept */
            at->dropout = (double)numbers[dice(2 * 3 * 7 * 31)];
        copy_of(&c, &other);
        put_seed_in_memory(&other);
        call_compute(&other, 2);
        call_compute(&c, 2);
        assert_memory_equal(other.o[TN_ATTENTION_OUT].memory, c.o[TN_ATTENTION_OUT].memory,
                            c.o[TN_ATTENTION_OUT].size);
        call_compute(&plain, 2);
        for (int64_t place = 0; place < 2 * 3 * 7 * 31; place++) {
            long double weight = value_at(&plain.o[TN_ATTENTION_OUT], place, 0);
            long double found = value_at(&c.o[TN_ATTENTION_OUT], place, 0);
            bool keeps = (double)numbers[place] >= at->dropout;
            dropped += !keeps;
            assert_int_equal(found != 0, keeps);
            const long double want = keeps ? weight / (1 - at->dropout) : 0; /* of a rounded one */
            const long double near = ulp(TN_F32, weight) / (1 - at->dropout) + ulp(TN_F32, want);
            assert_true(fabsl(found - want) <= 0.501L * near);
        }
        assert_true(turn % 5 == 0 || dropped > 0);
        for (int64_t n = 0; n < 2 * 3 * 7; n++) /* lse is of all of them */
            assert_true(value_at(&plain.o[TN_ATTENTION_LSE], n, 0) ==
                        value_at(&c.o[TN_ATTENTION_LSE], n, 0));
        free(numbers);
        call_drop(&c);
        call_drop(&plain);
        call_drop(&other);
    }
}

static void rows_that_see_nothing(void **state)
{
    (void)state;
    for (int turn = 0; turn < 8; turn++) {
        call c = call_of(floats[turn % 4], 1, 2, 1, 6, 3, 4, 4);
        const bool sinks = turn >= 4;
        TN_PARAMS_MUTABLE(&c.op, attention)->right = 0; /* queries 0, 1 and 2 lie before all keys */
        TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
        if (sinks)
            c.o[TN_ATTENTION_SINKS] = make_random(TN_F32, 1, (const int64_t[]){2}, DENSE);
        call_compute(&c, 1);
        for (int64_t n = 0; n < 12; n++) {
            long double lse = value_at(&c.o[TN_ATTENTION_LSE], n, 0);
            long double sink = sinks ? value_at(&c.o[TN_ATTENTION_SINKS], n / 6, 0) : 0;
            if (n % 6 < 3)
                assert_true(lse == (sinks ? sink : -(long double)INFINITY));
            for (int64_t d = 0; d < 4 && n % 6 < 3; d++)
                assert_true(value_at(&c.o[TN_ATTENTION_OUT], n * 4 + d, 0) == 0);
        }
        check(&c);
        call_drop(&c);
    }
    call none = call_of(TN_F32, 1, 2, 1, 2, 0, 4, 4); /* no key is there at all */
    call_compute(&none, 1);
    assert_true(value_at(&none.o[TN_ATTENTION_OUT], 7, 0) == 0);
    assert_true(value_at(&none.o[TN_ATTENTION_LSE], 1, 0) == -(long double)INFINITY);
    none.o[TN_ATTENTION_SINKS] = make(TN_F32, 1, (const int64_t[]){2}, DENSE);
    put_number(&none.o[TN_ATTENTION_SINKS], 0, INFINITY);
    put_number(&none.o[TN_ATTENTION_SINKS], 1, NAN);
    call_compute(&none, 1); /* sinks are no less odd than keys */
    for (int64_t e = 0; e < 16; e++)
        assert_true(value_at(&none.o[TN_ATTENTION_OUT], e, 0) == 0);
    assert_true(value_at(&none.o[TN_ATTENTION_LSE], 1, 0) == (long double)INFINITY);
    assert_true(is_nan(value_at(&none.o[TN_ATTENTION_LSE], 2, 0)));
    call_drop(&none);
}

/* Exponentials of these would be too great, or nothing. */
static void scores_and_sinks_are_great(void **state)
{
    (void)state;
    for (int turn = 0; turn < 16; turn++) {
        call c = call_of(turn % 2 ? TN_F32 : TN_F64, 1, 2, 2, 5, 6, 3, 3);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = turn < 8 ? 1 : 3000;
        c.o[TN_ATTENTION_SINKS] = make(TN_F32, 1, (const int64_t[]){2}, DENSE);
        put_number(&c.o[TN_ATTENTION_SINKS], 0, turn % 3 ? 30000 : -30000);
        put_number(&c.o[TN_ATTENTION_SINKS], 1, turn % 5 ? 20 : -(double)INFINITY);
        call_compute(&c, 1);
        check(&c);
        call_drop(&c);
    }
}

static bool row_is_nan(const call *c, int64_t row)
{
    bool nan = is_nan(value_at(&c->o[TN_ATTENTION_LSE], row, 0));
    for (int64_t d = 0; d < 4; d++)
        assert_int_equal(is_nan(value_at(&c->o[TN_ATTENTION_OUT], row * 4 + d, 0)), nan);
    return nan;
}

/* Of four keys the third is a NaN, in K and V, and only the last of three queries may see it. */
static void odd_numbers_stay_with_those_who_see_them(void **state)
{
    (void)state;
    for (int turn = 0; turn < 12; turn++) {
        const tn_dtype dtype = floats[turn % 4];
        const int64_t shape[] = {1, 1, 3, 4};
        call c = call_of(dtype, 1, 1, 1, 3, 4, 4, 4);
        operand *mask = &c.o[TN_ATTENTION_MASK];
        *mask = make(turn < 8 ? TN_BOOL : dtype, 4, shape, DENSE);
        memset(mask->first, turn < 8, (size_t)(12 * bytes_of(mask->layout.dtype)));
        for (int64_t i = 0; i < 2; i++) {
            if (turn < 8)
                *element_at(mask, i * 4 + 2) = 0;
            else
                put_number(mask, i * 4 + 2, -(double)INFINITY);
        }
        for (int64_t d = 0; d < 4; d++) {
            put_number(&c.o[TN_ATTENTION_K], 2 * 4 + d, NAN);
            put_number(&c.o[TN_ATTENTION_V], 2 * 4 + d, NAN);
        }
        call_compute(&c, 1);
        assert_true(!row_is_nan(&c, 0) && !row_is_nan(&c, 1) && row_is_nan(&c, 2));
        call_drop(&c);
    }
}

static void infinite_scores(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        call c = call_of(floats[turn], 1, 1, 1, 1, 3, 1, 4);
        operand *k = &c.o[TN_ATTENTION_K];
        put_number(&c.o[TN_ATTENTION_Q], 0, -(double)INFINITY);
        store_random(floats[turn], element_at(k, 0));
        for (int64_t j = 0; j < 3; j++) /* all of one sign, so all scores are -infinity */
            memcpy(element_at(k, j), element_at(k, 0), (size_t)bytes_of(floats[turn]));
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = value_at(k, 0, 0) > 0 ? 1 : -1;
        call_compute(&c, 1);
        assert_true(value_at(&c.o[TN_ATTENTION_LSE], 0, 0) == -(long double)INFINITY);
        assert_true(value_at(&c.o[TN_ATTENTION_OUT], 0, 0) == 0);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = -TN_PARAMS(&c.op, attention)->scale;
        call_compute(&c, 1);
        assert_true(row_is_nan(&c, 0));
        TN_PARAMS_MUTABLE(&c.op, attention)->softcap = 2; /* which bounds them */
        call_compute(&c, 1);
        assert_false(row_is_nan(&c, 0));
        call_drop(&c);
    }
}

/* Rows of K and V that no query sees are not there at all. */
static void what_is_not_seen_is_not_read(void **state)
{
    const int64_t shape[] = {1, 1, 1, 8};
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        call c = call_of(TN_F32, 1, 1, 1, 3, 8, 4, 4);
        for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
            const operand whole = c.o[o];
            c.o[o].size = 5 * 4 * sizeof(float);
            c.o[o].first = c.o[o].memory = malloc(c.o[o].size);
            assert_non_null(c.o[o].memory);
            memcpy(c.o[o].first, whole.first, c.o[o].size);
            free(whole.memory);
        }
        if (turn == 0) {
            c.o[TN_ATTENTION_LENGTHS] = make(TN_I32, 1, (const int64_t[]){1}, DENSE);
            put_i32(&c.o[TN_ATTENTION_LENGTHS], 0, 5);
        } else {
            c.o[TN_ATTENTION_MASK] = make(turn == 1 ? TN_BOOL : TN_F32, 4, shape, DENSE);
            c.o[TN_ATTENTION_MASK].layout.shape[2] = 3;
            c.o[TN_ATTENTION_MASK].layout.stride[2] = 0;
            for (int64_t j = 0; j < 8; j++) {
                if (turn == 1)
                    *element_at(&c.o[TN_ATTENTION_MASK], j) = j < 5;
                else
                    put_number(&c.o[TN_ATTENTION_MASK], j, j < 5 ? 0 : -(double)INFINITY);
            }
        }
        call_compute(&c, 1);
        check(&c);
        call_drop(&c);
    }
}

static void no_memory_is_a_status(void **state)
{
    tn_error err = {0};
    (void)state;
    call c = call_of(TN_F64, 2, 3, 3, 40, 70, 4, 4);
    host_allocations = 0;
    assert_int_equal(call_run(&c, 4, &err), TN_OUT_OF_MEMORY);
    host_allocations = INT64_MAX;
    assert_string_equal(err.where, "cpu.attention.ref");
    assert_contains(err.message, "no memory for 4 tasks that need ");
    assert_untouched(&c);
    /* More scores than memory can have. */
    c.o[TN_ATTENTION_K].layout.shape[2] = c.o[TN_ATTENTION_V].layout.shape[2] = INT64_MAX / 64;
    c.o[TN_ATTENTION_K].layout.stride[2] = c.o[TN_ATTENTION_V].layout.stride[2] = 0;
    TN_PARAMS_MUTABLE(&c.op, attention)->keys = INT64_MAX / 64;
    assert_int_equal(call_run(&c, 1, &err), TN_OUT_OF_MEMORY);
    assert_untouched(&c);
    call_drop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_of_places),
        cmocka_unit_test(any_op_is_its_definition),
        cmocka_unit_test(sizes_at_edges),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(dropout_keeps_what_the_numbers_say),
        cmocka_unit_test(rows_that_see_nothing),
        cmocka_unit_test(scores_and_sinks_are_great),
        cmocka_unit_test(odd_numbers_stay_with_those_who_see_them),
        cmocka_unit_test(infinite_scores),
        cmocka_unit_test(what_is_not_seen_is_not_read),
        cmocka_unit_test(no_memory_is_a_status),
    };
    dice_begin();
    return run_suite("kernels.ref_attention", tests);
}
