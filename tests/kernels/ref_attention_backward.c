/* attention-backward of the reference kernels against its formula in long double and against differences of
 * what attention gives; attention-merge against attention over all keys. */
#include "gradients_make.h"

#include "tenon/module/op/attention_merge.h"

static const tn_dtype floats[] = {TN_F64, TN_F32, TN_F16, TN_BF16};

static long double slack_of(tn_dtype dtype, long double size)
{
    return ldexpl(size, dtype == TN_F64 ? -60 : -48);
}

/* The way back of a call that was computed: its operands are taken over. */
static call back_of(call *forward)
{
    static const int32_t of[] = {TN_ATTENTION_OUT, TN_ATTENTION_Q, TN_ATTENTION_K, TN_ATTENTION_V};
    const tn_dtype dtype = forward->o[TN_ATTENTION_Q].layout.dtype;
    call c = *forward;
    c.op.kind = TN_OP_ATTENTION_BACKWARD;
    c.op.count = TN_ATTENTION_BACKWARD_OPERANDS;
    for (int32_t o = TN_ATTENTION_BACKWARD_DOUT; o <= TN_ATTENTION_BACKWARD_DV; o++) {
        const int64_t *shape = forward->o[of[o - TN_ATTENTION_BACKWARD_DOUT]].layout.shape;
        c.o[o] = o == TN_ATTENTION_BACKWARD_DOUT
                     ? make_random(dtype, 4, shape, (int)dice(LAYOUTS))
                     : make_poisoned(dtype, 4, shape, (int)dice(REPEATED));
    }
    return c;
}

/* All gradients of a call that was computed are what they are by formula. The roundings of f64 are those of long
 * double, the kernel's and the formula's. */
static void check(const call *c)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    gradients g = gradients_of(c, dtype == TN_F64 ? 0x1p-63L : 0x1p-53L);
    for (int n = 0; n < GRADIENTS; n++) {
        const operand *found = &c->o[TN_ATTENTION_BACKWARD_DQ + n];
        for (int64_t e = 0; e < elements_of(&found->layout); e++)
            assert_near(dtype, value_at(found, e, 0), g.want[n][e], g.slack[n][e]);
        assert_outside_untouched(found);
    }
    gradients_drop(&g);
}

static call roll_forward(tn_dtype dtype)
{
    const int64_t groups = 1 + (int64_t)dice(2), size = 1 + (int64_t)dice(7);
    call c = call_of(dtype, 1 + (int64_t)dice(2), groups * (1 + (int64_t)dice(2)), groups,
                     1 + (int64_t)dice(20), 1 + (int64_t)dice(20), size,
                     dice(2) ? size : 1 + (int64_t)dice(9));
    roll_window(TN_PARAMS_MUTABLE(&c.op, attention));
    roll_numbers(TN_PARAMS_MUTABLE(&c.op, attention));
    roll_mask(&c);
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++)
        call_lay(&c, o, (int)dice(o >= TN_ATTENTION_OUT ? REPEATED : LAYOUTS));
    return c;
}

static void any_op_is_its_formula(void **state)
{
    const int turns = test_reduced() ? 60 : test_full() ? 400 : 120;
    (void)state;
    for (int turn = 0; turn < turns; turn++) {
        const tn_dtype dtype = floats[turn % 4];
        call forward = roll_forward(dtype);
        if (dice(3) == 0 && dtype != TN_F64) {
            forward.o[TN_ATTENTION_OUT].layout.dtype = TN_F32;
            call_lay(&forward, TN_ATTENTION_OUT, DENSE);
        }
        call_compute(&forward, 1);
        call c = back_of(&forward);
        call_compute(&c, 1 + (int32_t)dice(4));
        check(&c);
        call_drop(&c);
    }
}

/* The sum of dout out, for which dq, dk and dv are the derivatives; *out_size is what its roundings go by. */
static long double loss_of(call *forward, const operand *dout, long double *out_size)
{
    long double loss = 0;
    *out_size = 0;
    call_compute(forward, 1);
    for (int64_t e = 0; e < elements_of(&dout->layout); e++) {
        const long double by = value_at(dout, e, 0);
        const long double out = value_at(&forward->o[TN_ATTENTION_OUT], e, 0);
        loss += by * out;
        *out_size += fabsl(by) * (1 + fabsl(out));
    }
    return loss;
}

/* The loss's difference over two steps of element e of an operand of the call, by their length. */
static long double difference_of(call *forward, const operand *dout, operand *x, int64_t e,
                                 double step, long double *out_size)
{
    const double at = (double)value_at(x, e, 0), high = at + step, low = at - step;
    put_number(x, e, high);
    const long double above = loss_of(forward, dout, out_size);
    put_number(x, e, low);
    const long double below = loss_of(forward, dout, out_size);
    put_number(x, e, at);
    return (above - below) / ((long double)high - low);
}

/* Differences are off by about the square of their steps: those over whole and half steps tell by how much, and
 * what they would be without it. */
static void derivatives_are_differences(void **state)
{
    static const int32_t of[][2] = {{TN_ATTENTION_Q, TN_ATTENTION_BACKWARD_DQ},
                                    {TN_ATTENTION_K, TN_ATTENTION_BACKWARD_DK},
                                    {TN_ATTENTION_V, TN_ATTENTION_BACKWARD_DV}};
    const int turns = test_reduced() ? 6 : 30;
    const double step = 0x1p-13;
    (void)state;
    for (int turn = 0; turn < turns; turn++) {
        call forward = roll_forward(TN_F64);
        for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_V; o++)
            call_lay(&forward, o, (int)dice(REPEATED)); /* each element has a place of its own */
        call_compute(&forward, 1);
        call c = back_of(&forward);
        const operand *dout = &c.o[TN_ATTENTION_BACKWARD_DOUT];
        call_compute(&c, 2);
        for (int trial = 0; trial < 30; trial++) {
            const int32_t *pick = of[dice(3)];
            operand *x = &forward.o[pick[0]];
            const int64_t e = (int64_t)dice((uint64_t)elements_of(&x->layout));
            long double size;
            const long double whole = difference_of(&forward, dout, x, e, step, &size);
            const long double half = difference_of(&forward, dout, x, e, step / 2, &size);
            const long double want = (4 * half - whole) / 3, found = value_at(&c.o[pick[1]], e, 0);
            const long double slack = fabsl(whole - half) + 0x1p-50L * size / step;
            if (!(fabsl(found - want) <= slack))
                fail_msg("%Lg is not %Lg, off by %Lg of %Lg", found, want, found - want, slack);
        }
        call_drop(&c);
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    for (int turn = 0; turn < 8; turn++) {
        call forward = call_of(floats[turn % 4], 2, 4, 2, 40, 50, 8, 8);
        roll_window(TN_PARAMS_MUTABLE(&forward.op, attention));
        call_compute(&forward, 1);
        call c = back_of(&forward);
        operand one[TN_OP_OPERANDS_MAX];
        call_compute(&c, 1);
        for (int32_t o = TN_ATTENTION_BACKWARD_DQ; o <= TN_ATTENTION_BACKWARD_DV; o++) {
            one[o] = c.o[o];
            c.o[o] = make_poisoned(one[o].layout.dtype, 4, one[o].layout.shape, REVERSED);
        }
        host_tasks = 0;
        host_pool = tn_parallel_for;
        call_compute(&c, 2 + turn);
        host_pool = NULL;
        assert_int_equal(host_tasks, 2 + turn);
        for (int32_t o = TN_ATTENTION_BACKWARD_DQ; o <= TN_ATTENTION_BACKWARD_DV; o++) {
            for (int64_t e = 0; e < elements_of(&one[o].layout); e++)
                assert_memory_equal(element_at(&one[o], e), element_at(&c.o[o], e),
                                    (size_t)bytes_of(one[o].layout.dtype));
            drop(&one[o]);
        }
        call_drop(&c);
    }
}

static void seeds_may_be_in_memory(void **state)
{
    (void)state;
    for (int turn = 0; turn < 8; turn++) {
        call forward = call_of(floats[turn % 4], 2, 4, 2, 20, 30, 8, 8);
        TN_PARAMS_MUTABLE(&forward.op, attention)->dropout = 0.5;
        TN_PARAMS_MUTABLE(&forward.op, attention)->seed = dice(1000);
        TN_PARAMS_MUTABLE(&forward.op, attention)->offset = dice(1000);
        call_compute(&forward, 1);
        call c = back_of(&forward);
        operand one[TN_OP_OPERANDS_MAX];
        call_compute(&c, 1);
        for (int32_t o = TN_ATTENTION_BACKWARD_DQ; o <= TN_ATTENTION_BACKWARD_DV; o++) {
            one[o] = c.o[o];
            c.o[o] = make_poisoned(one[o].layout.dtype, 4, one[o].layout.shape, DENSE);
        }
        put_seed_in_memory(&c);
        call_compute(&c, 1);
        for (int32_t o = TN_ATTENTION_BACKWARD_DQ; o <= TN_ATTENTION_BACKWARD_DV; o++) {
            for (int64_t e = 0; e < elements_of(&one[o].layout); e++)
                assert_memory_equal(element_at(&one[o], e), element_at(&c.o[o], e),
                                    (size_t)bytes_of(one[o].layout.dtype));
            drop(&one[o]);
        }
        call_drop(&c);
    }
}

/* Query 0 sees nothing and no query sees key 3, whose numbers are NaNs. */
static void what_is_not_seen_has_no_part(void **state)
{
    const int64_t shape[] = {1, 1, 3, 4};
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        call forward = call_of(floats[turn], 1, 1, 1, 3, 4, 2, 2);
        operand *mask = &forward.o[TN_ATTENTION_MASK];
        *mask = make(TN_BOOL, 4, shape, DENSE);
        for (int64_t n = 0; n < 12; n++)
            *element_at(mask, n) = n >= 4 && n % 4 != 3;
        for (int64_t d = 0; d < 2; d++) {
            put_number(&forward.o[TN_ATTENTION_K], 6 + d, NAN);
            put_number(&forward.o[TN_ATTENTION_V], 6 + d, NAN);
        }
        call_compute(&forward, 1);
        call c = back_of(&forward);
        call_compute(&c, 1);
        for (int64_t d = 0; d < 2; d++) {
            assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DQ], d, 0) == 0);
            assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DK], 6 + d, 0) == 0);
            assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DV], 6 + d, 0) == 0);
            assert_false(is_nan(value_at(&c.o[TN_ATTENTION_BACKWARD_DQ], 4 + d, 0)));
            assert_false(is_nan(value_at(&c.o[TN_ATTENTION_BACKWARD_DK], d, 0)));
        }
        tn_error err = {0};
        host_allocations = 0;
        assert_int_equal(call_run(&c, 1, &err), TN_OUT_OF_MEMORY);
        host_allocations = INT64_MAX;
        assert_string_equal(err.where, "cpu.attention-backward.ref");
        call_drop(&c);
    }
}

/* All scores are -infinity: the weights are 0 then, and nothing is a NaN that need not be. */
static void scores_of_minus_infinity(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        call forward = call_of(floats[turn], 1, 1, 1, 1, 2, 1, 3);
        operand *q = &forward.o[TN_ATTENTION_Q], *k = &forward.o[TN_ATTENTION_K];
        put_number(q, 0, -(double)INFINITY);
        memcpy(element_at(k, 1), element_at(k, 0), (size_t)bytes_of(floats[turn]));
        TN_PARAMS_MUTABLE(&forward.op, attention)->scale = value_at(k, 0, 0) > 0 ? 1 : -1;
        call_compute(&forward, 1);
        call c = back_of(&forward);
        call_compute(&c, 1);
        assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DQ], 0, 0) == 0);
        for (int64_t e = 0; e < 6; e++)
            assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DV], e, 0) == 0);
        call_drop(&c);
    }
}

/* Without queries, dk and dv are still there. */
static void no_query_gives_no_gradient(void **state)
{
    (void)state;
    call forward = call_of(TN_F32, 1, 2, 1, 0, 5, 3, 3);
    call c = back_of(&forward);
    call_compute(&c, 2);
    for (int64_t e = 0; e < 15; e++)
        assert_true(value_at(&c.o[TN_ATTENTION_BACKWARD_DK], e, 0) == 0 &&
                    value_at(&c.o[TN_ATTENTION_BACKWARD_DV], e, 0) == 0);
    call_drop(&c);
}

/* Keys first..end-1 of an op as an op of its own, which shares its operands but for what it writes. */
static call part_of(const call *c, int64_t first, int64_t end)
{
    call part = *c;
    TN_PARAMS_MUTABLE(&part.op, attention)->keys = end - first;
    for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++) {
        tn_layout *layout = &part.o[o].layout;
        layout->shape[2] = end - first;
        part.o[o].first += first * layout->stride[2] * bytes_of(layout->dtype);
    }
    for (int32_t o = TN_ATTENTION_OUT; o <= TN_ATTENTION_LSE; o++)
        part.o[o] = make_poisoned(c->o[o].layout.dtype, c->o[o].layout.rank, c->o[o].layout.shape,
                                  (int)dice(REPEATED));
    return part;
}

static void merge(const call *a, const call *b, operand *out, operand *lse, int32_t threads)
{
    tn_op op = {.struct_size = sizeof op, .kind = TN_OP_ATTENTION_MERGE};
    const operand *const operands[] = {&a->o[TN_ATTENTION_OUT],
                                       &a->o[TN_ATTENTION_LSE],
                                       &b->o[TN_ATTENTION_OUT],
                                       &b->o[TN_ATTENTION_LSE],
                                       out,
                                       lse};
    op.count = TN_MERGE_OPERANDS;
    compute(&op, operands, threads);
}

static void two_parts_are_the_whole(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        const tn_dtype dtype = floats[turn % 4];
        const int64_t keys = 1 + (int64_t)dice(20), cut = (int64_t)dice((uint64_t)keys + 1);
        call c = call_of(dtype, 2, 3, 3, 4, keys, 5, turn % 5 ? 6 : 700);
        const tn_layout *to = &c.o[TN_ATTENTION_OUT].layout;
        call_compute(&c, 1);
        call a = part_of(&c, 0, cut), b = part_of(&c, cut, keys);
        call_compute(&a, 1);
        call_compute(&b, 1);
        operand out = make_poisoned(dtype, 4, to->shape, (int)dice(REPEATED));
        operand lse =
            make_poisoned(c.o[TN_ATTENTION_LSE].layout.dtype, 3, to->shape, (int)dice(REPEATED));
        /* Results and lse of both parts were rounded before. */
        const long double near = 2 * ulp(dtype, 4) + 8 * ulp(lse.layout.dtype, 16);
        merge(&a, &b, &out, turn % 3 ? &lse : NULL, 2);
        for (int64_t e = 0; e < elements_of(to); e++) {
            long double want = value_at(&c.o[TN_ATTENTION_OUT], e, 0);
            assert_true(fabsl(value_at(&out, e, 0) - want) <= near);
            if (cut == 0 || cut == keys) /* an empty part changes nothing */
                assert_true(value_at(&out, e, 0) == want);
        }
        for (int64_t n = 0; n < 24 && turn % 3; n++)
            assert_true(fabsl(value_at(&lse, n, 0) - value_at(&c.o[TN_ATTENTION_LSE], n, 0)) <=
                        4 * ulp(lse.layout.dtype, 16));
        assert_outside_untouched(&out);
        assert_outside_untouched(&lse);
        for (int32_t o = TN_ATTENTION_OUT; o <= TN_ATTENTION_LSE; o++)
            drop(&a.o[o]), drop(&b.o[o]);
        drop(&out), drop(&lse);
        call_drop(&c);
    }
}

/* Any numbers, by the formula; lse far apart and -infinity among them. */
static void merging_is_its_formula(void **state)
{
    const int64_t shape[] = {2, 2, 5, 3};
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        const tn_dtype dtype = floats[turn % 4], sums = dtype == TN_F64 ? TN_F64 : TN_F32;
        const tn_dtype to = dtype != TN_F64 && dice(2) ? TN_F32 : dtype;
        call part[2];
        operand out = make_poisoned(to, 4, shape, SPREAD),
                lse = make_poisoned(sums, 3, shape, TURNED);
        for (int p = 0; p < 2; p++) {
            part[p].o[TN_ATTENTION_OUT] = make_random(dtype, 4, shape, (int)dice(REPEATED));
            part[p].o[TN_ATTENTION_LSE] = make_random(sums, 3, shape, (int)dice(REPEATED));
            for (int64_t n = 0; n < 20; n++) {
                bool none = dice(5) == 0;
                if (dice(3) == 0)
                    put_number(&part[p].o[TN_ATTENTION_LSE], n, (double)dice(2000) - 1000);
                if (none)
                    put_number(&part[p].o[TN_ATTENTION_LSE], n, -(double)INFINITY);
                for (int64_t d = 0; d < 3 && none; d++) /* of what saw no key nothing is read */
                    put_number(&part[p].o[TN_ATTENTION_OUT], 3 * n + d, NAN);
            }
        }
        merge(&part[0], &part[1], &out, &lse, 1);
        for (int64_t e = 0; e < 60; e++) {
            long double x = value_at(&part[0].o[TN_ATTENTION_LSE], e / 3, 0);
            long double y = value_at(&part[1].o[TN_ATTENTION_LSE], e / 3, 0);
            long double want_lse = fmaxl(x, y) + log1pl(expl(-fabsl(x - y)));
            long double want = 0;
            want_lse = is_inf(x) && is_inf(y) ? x : want_lse;
            /* By differences: a weight exp(x - lse) carries the rounding of an lse of 1000. */
            if (!is_inf(x))
                want += value_at(&part[0].o[TN_ATTENTION_OUT], e, 0) / (1 + expl(y - x));
            if (!is_inf(y))
                want += value_at(&part[1].o[TN_ATTENTION_OUT], e, 0) / (1 + expl(x - y));
            assert_near(to, value_at(&out, e, 0), want, slack_of(dtype, 8));
            assert_near(sums, value_at(&lse, e / 3, 0), want_lse, slack_of(dtype, 1000));
        }
        for (int p = 0; p < 2; p++)
            drop(&part[p].o[TN_ATTENTION_OUT]), drop(&part[p].o[TN_ATTENTION_LSE]);
        drop(&out), drop(&lse);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_op_is_its_formula),    cmocka_unit_test(derivatives_are_differences),
        cmocka_unit_test(threads_change_no_bit),    cmocka_unit_test(what_is_not_seen_has_no_part),
        cmocka_unit_test(scores_of_minus_infinity), cmocka_unit_test(no_query_gives_no_gradient),
        cmocka_unit_test(two_parts_are_the_whole),  cmocka_unit_test(merging_is_its_formula),
        cmocka_unit_test(seeds_may_be_in_memory),
    };
    dice_begin();
    return run_suite("kernels.ref_attention_backward", tests);
}
