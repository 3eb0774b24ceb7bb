/* The processor's own attention-backward, every row that runs here, against the reference. */
#include "cpu_attention_make.h"
#include "gradients_make.h"

static const int32_t results[] = {TN_ATTENTION_BACKWARD_DQ, TN_ATTENTION_BACKWARD_DK,
                                  TN_ATTENTION_BACKWARD_DV};
enum { RESULTS = 3 };

static const tn_dtype floats[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

static void find_all(void)
{
    (void)find_rows_of(TN_OP_ATTENTION_BACKWARD, floats, 0, 0);
}

static call roll_forward(int64_t most_queries, int64_t most_keys)
{
    const int64_t groups = 1 + (int64_t)dice(2), size = roll_size(70);
    call c = call_of(floats[dice(4)], 1 + (int64_t)dice(2), groups * (1 + (int64_t)dice(2)), groups,
                     roll_size(most_queries), roll_size(most_keys), size,
                     dice(2) ? size : roll_size(70));
    roll_numbers(TN_PARAMS_MUTABLE(&c.op, attention));
    roll_mask(&c);
    roll_wide_window(TN_PARAMS_MUTABLE(&c.op, attention));
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++)
        call_lay(&c, o, (int)dice(o >= TN_ATTENTION_OUT ? REPEATED : LAYOUTS));
    return c;
}

/* A gradient is that of the reference but for the row's roundings; of 16 bits, either way. */
static void assert_gradient(const call *found, const call *want, int which, const gradients *g,
                            const char *name)
{
    const operand *of = &found->o[results[which]];
    const tn_dtype dtype = of->layout.dtype;
    for (int64_t e = 0; e < elements_of(&of->layout); e++) {
        const long double x = value_at(of, e, 0), y = value_at(&want->o[results[which]], e, 0);
        long double slack = g->slack[which][e];
        if (dtype == TN_BF16 || dtype == TN_F16)
            slack += ulp(dtype, fmaxl(fabsl(x), fabsl(y)));
        if (!(fabsl(x - y) <= slack))
            fail_msg("%s: operand %d, element %lld: %Lg is not %Lg, off by %Lg of %Lg", name,
                     (int)results[which], (long long)e, x, y, x - y, slack);
    }
}

static void check(call *c, int32_t threads)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    gradients g = gradients_of(c, dtype == TN_F64 ? 0x1p-53L : 0x1p-24L);
    call want = twin_of(c, results, RESULTS);
    call_compute(&want, 1);
    for (int n = 0; n < row_count; n++) {
        if (!takes(rows[n], c))
            continue;
        call found = twin_of(c, results, RESULTS);
        for (int i = 0; i < RESULTS; i++) {
            const tn_layout like = found.o[results[i]].layout;
            drop(&found.o[results[i]]);
            found.o[results[i]] =
                make_poisoned(like.dtype, like.rank, like.shape, (int)dice(REPEATED));
        }
        compute_by(rows[n], &found, threads);
        for (int i = 0; i < RESULTS; i++) {
            assert_gradient(&found, &want, i, &g, rows[n]->name);
            assert_outside_untouched(&found.o[results[i]]);
        }
        twin_drop(&found, results, RESULTS);
    }
    twin_drop(&want, results, RESULTS);
    gradients_drop(&g);
}

static void any_op_is_that_of_the_reference(void **state)
{
    const int turns = test_fewest() ? 3 : !test_full() ? 12 : test_reduced() ? 30 : 250;
    (void)state;
    find_all();
    for (int turn = 0; turn < turns; turn++) {
        call forward = turn % 8 ? roll_forward(40, 60) : roll_forward(300, 600);
        call_compute(&forward, 1);
        call c = back_of(&forward, (int)dice(LAYOUTS));
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

/* One below, at and one above tiles and blocks, and several blocks of both. */
static void sizes_at_edges(void **state)
{
    static const int64_t sizes[][3] = {{127, 255, 15}, {128, 256, 16}, {129, 257, 17},
                                       {1, 1, 1},      {14, 32, 31},   {15, 33, 32},
                                       {600, 40, 33},  {40, 1100, 5}};
    (void)state;
    find_all();
    for (int n = 0; n < 8; n++) {
        for (int turn = 0; turn < 4; turn++) {
            if (!test_sampled((uint64_t)(n * 4 + turn),
                              sizes[n][1] > 33 ? (test_fewest() ? 40 : 10) : 2))
                continue;
            const int64_t *s = sizes[n];
            call forward = call_of(floats[turn], 1, 2, 1 + n % 2, s[0], s[1], s[2], s[2] + 1);
            TN_PARAMS_MUTABLE(&forward.op, attention)->right = n % 3 ? -1 : 0;
            call_compute(&forward, 1);
            call c = back_of(&forward, (int)dice(LAYOUTS));
            check(&c, 2);
            call_drop(&c);
        }
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < (test_fewest()                    ? 1
                               : test_full() && !test_reduced() ? 12
                                                                : 4);
         turn++) {
        call forward = call_of(floats[turn % 4], 2, 2, 1 + turn / 2 % 2, turn % 3 ? 300 : 1100,
                               turn % 3 ? 700 : 300, 24, 20);
        roll_wide_window(TN_PARAMS_MUTABLE(&forward.op, attention));
        call_compute(&forward, 1);
        call c = back_of(&forward, (int)dice(LAYOUTS));
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            call one = twin_of(&c, results, RESULTS);
            compute_by(rows[n], &one, 1);
            for (int32_t threads = 2; threads < 18; threads += 5) {
                call many = twin_of(&c, results, RESULTS);
                compute_by(rows[n], &many, threads);
                for (int i = 0; i < RESULTS; i++)
                    assert_memory_equal(one.o[results[i]].memory, many.o[results[i]].memory,
                                        one.o[results[i]].size);
                twin_drop(&many, results, RESULTS);
            }
            twin_drop(&one, results, RESULTS);
        }
        call_drop(&c);
    }
}

/* Queries before `odd` do not see that key, whose numbers are NaNs, and no one sees the last. */
static void what_is_not_seen_has_no_part(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < 8; turn++) {
        const int64_t keys = 41, odd = 40, shape[] = {1, 1, 30, keys};
        call forward = call_of(floats[turn % 4], 1, 1, 1, 30, keys, 18, 9);
        operand *mask = &forward.o[TN_ATTENTION_MASK];
        *mask = make(TN_BOOL, 4, shape, DENSE);
        for (int64_t n = 0; n < 30 * keys; n++) /* query 0 sees nothing, nobody the last key */
            *element_at(mask, n) = n >= keys && n % keys != odd;
        for (int64_t d = 0; d < 18; d++) {
            put_number(&forward.o[TN_ATTENTION_K], odd * 18 + d, NAN);
            put_number(&forward.o[TN_ATTENTION_Q], d, NAN);
            if (d < 9)
                put_number(&forward.o[TN_ATTENTION_V], odd * 9 + d, NAN);
        }
        call_compute(&forward, 1);
        call c = back_of(&forward, (int)dice(LAYOUTS));
        for (int64_t d = 0; d < 9; d++)
            put_number(&c.o[TN_ATTENTION_BACKWARD_DOUT], d, turn < 4 ? 0.5 : (double)INFINITY);
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            compute_by(rows[n], &c, 2);
            for (int i = 0; i < RESULTS; i++) {
                const operand *o = &c.o[results[i]];
                for (int64_t e = 0; e < elements_of(&o->layout); e++)
                    assert_false(is_nan(value_at(o, e, 0)));
            }
            for (int64_t d = 0; d < 18; d++) {
                assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DQ], d, 0) == 0);
                assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DK], odd * 18 + d, 0) == 0);
            }
        }
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_op_is_that_of_the_reference),
        cmocka_unit_test(sizes_at_edges),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(what_is_not_seen_has_no_part),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_backward", tests);
}
