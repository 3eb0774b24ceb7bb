/* NaNs and infinities in the operands of attention-backward: a pair of a query and a key that it does not see has part
 * in no gradient; one that it sees goes into all of them by the rules of IEEE 754. The reference is held against the
 * formula, every row of the processor against the reference. */
#include "nonfinite_make.h"

static const int32_t results[] = {TN_ATTENTION_BACKWARD_DQ, TN_ATTENTION_BACKWARD_DK,
                                  TN_ATTENTION_BACKWARD_DV};
static const int32_t key_sides[] = {TN_ATTENTION_K, TN_ATTENTION_V};
enum { RESULTS = 3, KEY_SIDES = 2 };

static void find_all(void)
{
    (void)find_rows_of(TN_OP_ATTENTION_BACKWARD, floats, 0, 0);
}

/* Numbers of a call in long doubles, and its gradients by the formula. */
typedef struct sheet {
    const call *c;
    float *numbers;
    long double *sum[RESULTS];
} sheet;

static long double product_of(const call *c, int32_t a, int32_t b, const head *in, int64_t i,
                              int64_t j)
{
    const int64_t size = c->o[a].layout.shape[3];
    long double sum = 0;
    for (int64_t d = 0; d < size; d++)
        sum += query_value(c, a, in, i, d) *
               (b == TN_ATTENTION_OUT ? query_value(c, b, in, i, d) : key_value(c, b, in, j, d));
    return sum;
}

static void add_row(const sheet *s, int which, int64_t first, long double by, int32_t from,
                    const head *in, int64_t at)
{
    const int64_t size = s->c->o[from].layout.shape[3];
    for (int64_t d = 0; d < size; d++)
        s->sum[which][first + d] +=
            by * (from == TN_ATTENTION_K ? key_value(s->c, from, in, at, d)
                                         : query_value(s->c, from, in, at, d));
}

/* What a pair that is seen adds to the gradients. */
static void add_pair(const sheet *s, const head *in, int64_t i, int64_t j)
{
    const call *c = s->c;
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const long double lse = query_value(c, TN_ATTENTION_LSE, in, i, 0), cap = at->softcap;
    const long double gain = at->dropout > 0 ? kept(at, s->numbers, in, i, j) : 1;
    long double score =
        (long double)at->scale * product_of(c, TN_ATTENTION_Q, TN_ATTENTION_K, in, i, j);
    long double bend = 1, along = 0;
    if (lse == -(long double)INFINITY)
        return;
    if (cap > 0) {
        bend = 1 - tanhl(score / cap) * tanhl(score / cap);
        score = cap * tanhl(score / cap);
    }
    if (has(c, TN_ATTENTION_MASK) && c->o[TN_ATTENTION_MASK].layout.dtype != TN_BOOL)
        score += mask_value(c, in, i, j);
    if (gain > 0)
        along = gain * product_of(c, TN_ATTENTION_BACKWARD_DOUT, TN_ATTENTION_V, in, i, j);
    const long double weight = expl(score - lse);
    const long double slope =
        (long double)at->scale * bend * weight *
        (along - product_of(c, TN_ATTENTION_BACKWARD_DOUT, TN_ATTENTION_OUT, in, i, j));
    add_row(s, 0, query_index(c, TN_ATTENTION_BACKWARD_DQ, in, i, 0), slope, TN_ATTENTION_K, in, j);
    add_row(s, 1, key_index(c, TN_ATTENTION_BACKWARD_DK, in, j, 0), slope, TN_ATTENTION_Q, in, i);
    if (gain > 0)
        add_row(s, 2, key_index(c, TN_ATTENTION_BACKWARD_DV, in, j, 0), weight * gain,
                TN_ATTENTION_BACKWARD_DOUT, in, i);
}

static sheet sheet_of(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    sheet s = {.c = c, .numbers = dropout_numbers(at)};
    for (int n = 0; n < RESULTS; n++) {
        s.sum[n] = calloc((size_t)elements_of(&c->o[results[n]].layout) + 1, sizeof *s.sum[n]);
        assert_non_null(s.sum[n]);
    }
    for (int64_t n = 0; n < at->batch * at->heads; n++) {
        const head in = head_of(c, n / at->heads, n % at->heads);
        for (int64_t i = 0; i < in.queries; i++)
            for (int64_t j = 0; j < in.keys; j++) {
                if (is_seen(c, &in, i, j))
                    add_pair(&s, &in, i, j);
            }
    }
    return s;
}

static void sheet_drop(sheet *s)
{
    for (int n = 0; n < RESULTS; n++)
        free(s->sum[n]);
    free(s->numbers);
}

/* The reference by the formula, and every row of the dtype as the reference; same bits on 1 to 4 threads. */
static void check(call *c)
{
    call want = twin_of(c, results, RESULTS);
    sheet s = sheet_of(c);
    call_compute(&want, 1);
    for (int i = 0; i < RESULTS; i++) {
        const operand *o = &want.o[results[i]];
        for (int64_t e = 0; e < elements_of(&o->layout); e++) {
            if (!same_kind(value_at(o, e, 0), s.sum[i][e]))
                fail_msg("reference: operand %d, element %lld: %Lg, by the formula %Lg",
                         (int)results[i], (long long)e, value_at(o, e, 0), s.sum[i][e]);
        }
    }
    for (int n = 0; n < row_count; n++) {
        if (!takes(rows[n], c))
            continue;
        call found = twin_of(c, results, RESULTS), other = twin_of(c, results, RESULTS);
        compute_by(rows[n], &found, 1);
        compute_by(rows[n], &other, 2 + (int32_t)dice(3));
        for (int i = 0; i < RESULTS; i++) {
            assert_kinds(&found.o[results[i]], &want.o[results[i]], results[i], rows[n]);
            assert_memory_equal(found.o[results[i]].memory, other.o[results[i]].memory,
                                found.o[results[i]].size);
        }
        twin_drop(&found, results, RESULTS);
        twin_drop(&other, results, RESULTS);
    }
    sheet_drop(&s);
    twin_drop(&want, results, RESULTS);
}

/* Some of Q and of dout, too. */
static void put_anywhere(call *c, int32_t which)
{
    operand *o = &c->o[which];
    const int64_t size = o->layout.shape[3],
                  row = (int64_t)dice((uint64_t)(elements_of(&o->layout) / size));
    put_number(o, row * size + (int64_t)dice((uint64_t)size),
               dice(2) ? (double)NAN : (double)INFINITY);
}

static void every_way_to_exclude_a_key(void **state)
{
    static const int64_t queries[] = {1, 20, 45, 150};
    const int turns = test_reduced() ? 1 : 4;
    (void)state;
    find_all();
    for (int turn = 0; turn < turns * MASKS * 4; turn++) {
        if (!test_sampled((uint64_t)turn, 3))
            continue;
        call forward = excluding_call(floats[turn % 4], 1, queries[dice(4)], 53, turn / 4 % MASKS);
        const oddity odd = roll_oddity();
        TN_PARAMS_MUTABLE(&forward.op, attention)->dropout = dice(4) ? 0 : 0.5;
        TN_PARAMS_MUTABLE(&forward.op, attention)->softcap = dice(5) ? 0 : 3;
        put_oddity(&forward, &odd);
        if (dice(4) == 0)
            put_anywhere(&forward, TN_ATTENTION_Q);
        call_compute(&forward, 1);
        call c = back_of(&forward, DENSE);
        if (dice(4) == 0)
            put_anywhere(&c, TN_ATTENTION_BACKWARD_DOUT);
        check(&c);
        call_drop(&c);
    }
}

/* No query sees the keys that hold what is no number: gradients have the bits that they have with 0 there, and those of
 * such keys are 0. */
static void what_no_query_sees_changes_no_bit(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < (test_reduced() ? 16 : 48); turn++) {
        if (!test_sampled((uint64_t)turn, 3))
            continue;
        const int64_t queries = turn / 4 % 2 ? 40 : 150, keys = 300, shape[] = {1, 1, 1, keys};
        const oddity odd = {roll_oddity().value, 0, true, true};
        call forward = call_of(floats[turn % 4], 1, 2, 1, queries, keys, 17, 33);
        operand *mask = &forward.o[TN_ATTENTION_MASK];
        *mask = make(TN_BOOL, 4, shape, DENSE);
        mask->layout.shape[1] = 2;
        mask->layout.shape[2] = queries;
        mask->layout.stride[1] = mask->layout.stride[2] = 0;
        for (int64_t j = 0; j < keys; j++)
            mask->first[j] = (char)(dice(4) != 0);
        for (int64_t e = 0; e < keys * 33; e++) {
            if (!mask->first[e / 33])
                put_number(&forward.o[TN_ATTENTION_V], e, odd.value);
            if (e < keys * 17 && !mask->first[e / 17])
                put_number(&forward.o[TN_ATTENTION_K], e, odd.value);
        }
        TN_PARAMS_MUTABLE(&forward.op, attention)->right = turn / 8 % 2 ? -1 : 0;
        call_compute(&forward, 1);
        call c = back_of(&forward, DENSE), clean = cleaned(&c, key_sides, KEY_SIDES);
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            call found = twin_of(&c, results, RESULTS), without = twin_of(&clean, results, RESULTS);
            compute_by(rows[n], &found, 1);
            compute_by(rows[n], &without, 1);
            for (int i = 0; i < RESULTS; i++)
                assert_memory_equal(found.o[results[i]].memory, without.o[results[i]].memory,
                                    found.o[results[i]].size);
            for (int64_t e = 0; e < keys * 17; e++) {
                if (!mask->first[e / 17])
                    assert_true(value_at(&found.o[TN_ATTENTION_BACKWARD_DK], e, 0) == 0);
            }
            twin_drop(&found, results, RESULTS);
            twin_drop(&without, results, RESULTS);
        }
        twin_drop(&clean, key_sides, KEY_SIDES);
        call_drop(&c);
    }
}

/* Rows whose lse is -infinity saw nothing: they give nothing to any key, whatever the operands hold. */
static void rows_that_saw_nothing(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < 8; turn++) {
        call forward = call_of(floats[turn % 4], 1, 1, 1, 40, 33, 1, 16);
        for (int64_t i = 0; i < 40; i += 2)
            put_number(&forward.o[TN_ATTENTION_Q], i, -(double)INFINITY);
        for (int64_t j = 0; j < 33; j++) /* all above 0 */
            element_at(&forward.o[TN_ATTENTION_K], j)[bytes_of(floats[turn % 4]) - 1] &= 0x7F;
        call_compute(&forward, 1);
        call c = back_of(&forward, DENSE);
        for (int64_t d = 0; d < 16 && turn < 4; d++)
            put_number(&c.o[TN_ATTENTION_BACKWARD_DOUT], 2 * 16 + d, (double)NAN);
        if (turn >= 4)
            put_number(&c.o[TN_ATTENTION_V], 5, (double)INFINITY);
        check(&c);
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_exclude_a_key),
        cmocka_unit_test(what_no_query_sees_changes_no_bit),
        cmocka_unit_test(rows_that_saw_nothing),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_nonfinite_backward", tests);
}
