/* NaNs and infinities in K and V: what a row does not see changes no bit of it, and what it sees goes into it by the
 * rules of IEEE 754, a weight of 0 included. The reference is held against the definition, every row of the processor
 * against the reference. */
#include "nonfinite_make.h"

static const int32_t results[] = {TN_ATTENTION_OUT, TN_ATTENTION_LSE};
static const int32_t key_sides[] = {TN_ATTENTION_K, TN_ATTENTION_V};
enum { RESULTS = 2, KEY_SIDES = 2 };

static void find_all(void)
{
    (void)find_rows_of(TN_OP_ATTENTION, floats, 0, 0);
}

/* What is known of a row by definition. */
typedef struct row_kind {
    long double lse;
    bool clean;   /* it sees no key whose K holds what is no number */
    bool weighed; /* some score is not -infinity                    */
    long double weight[MOST_KEYS];
    bool counts[MOST_KEYS]; /* seen, and kept by dropout                      */
} row_kind;

static void read_row(const call *c, const head *in, int64_t i, const float *numbers, row_kind *out)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    long double sink = -(long double)INFINITY, greatest, sum;
    double q[64], k[64];
    assert_true(in->keys <= MOST_KEYS && at->size <= 64);
    if (has(c, TN_ATTENTION_SINKS))
        sink = value_at(&c->o[TN_ATTENTION_SINKS], in->h, 0);
    greatest = sink;
    *out = (row_kind){.clean = true};
    for (int64_t j = 0; j < in->keys; j++) {
        out->weight[j] = -(long double)INFINITY;
        if (!is_seen(c, in, i, j))
            continue;
        for (int64_t d = 0; d < at->size; d++) {
            q[d] = (double)query_value(c, TN_ATTENTION_Q, in, i, d);
            k[d] = (double)key_value(c, TN_ATTENTION_K, in, j, d);
            out->clean = out->clean && is_number(k[d]);
        }
        out->counts[j] = at->dropout == 0 || kept(at, numbers, in, i, j) != 0;
        out->weight[j] = score_of(c, in, i, j, q, k).value;
        out->weighed = out->weighed || out->weight[j] != -(long double)INFINITY;
        greatest = out->weight[j] > greatest ? out->weight[j] : greatest;
    }
    greatest = greatest == -(long double)INFINITY ? 0 : greatest;
    sum = expl(sink - greatest);
    for (int64_t j = 0; j < in->keys; j++)
        sum += is_seen(c, in, i, j) ? expl(out->weight[j] - greatest) : 0;
    out->lse = out->weighed ? greatest + logl(sum) : sink;
    for (int64_t j = 0; j < in->keys; j++)
        out->weight[j] = expl(out->weight[j] - out->lse);
}

/* Column d of a row by definition; *out_clean: no value that goes into it is other than a number. */
static long double column_of(const call *c, const head *in, const row_kind *row, int64_t d,
                             bool *out_clean)
{
    long double sum =
        row->weighed && is_nan(row->lse) ? (long double)NAN : 0; /* it is divided by */
    *out_clean = row->clean;
    for (int64_t j = 0; j < in->keys && row->weighed; j++) {
        const long double value = key_value(c, TN_ATTENTION_V, in, j, d);
        if (!row->counts[j])
            continue;
        sum += row->weight[j] * value;
        *out_clean = *out_clean && is_number(value);
    }
    return sum;
}

/* Out and lse by definition, in the order of their elements, and of out whether it is of numbers alone. */
typedef struct definition {
    long double *out, *lse;
    bool *clean;
} definition;

static definition definition_of(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const int64_t count = elements_of(&c->o[TN_ATTENTION_OUT].layout) + 1;
    definition is = {malloc((size_t)count * sizeof *is.out), malloc((size_t)count * sizeof *is.lse),
                     calloc((size_t)count, sizeof *is.clean)};
    float *numbers = at->dropout != 0 ? dropout_numbers(at) : NULL;
    row_kind row;
    assert_true(is.out && is.lse && is.clean);
    for (int64_t e = 0; e < count; e++)
        is.out[e] = is.lse[e] = (long double)NAN; /* of rows that are in no sequence: not written */
    for (int64_t n = 0; n < at->batch * at->heads; n++) {
        const head in = head_of(c, n / at->heads, n % at->heads);
        for (int64_t i = 0; i < in.queries; i++) {
            const int64_t first = query_index(c, TN_ATTENTION_OUT, &in, i, 0);
            read_row(c, &in, i, numbers, &row);
            is.lse[query_index(c, TN_ATTENTION_LSE, &in, i, 0)] = row.lse;
            for (int64_t d = 0; d < at->value_size; d++)
                is.out[first + d] = column_of(c, &in, &row, d, &is.clean[first + d]);
        }
    }
    free(numbers);
    return is;
}

static void definition_drop(definition *is)
{
    free(is->out);
    free(is->lse);
    free(is->clean);
}

static void assert_defined(const operand *found, const long double *want, const char *what)
{
    for (int64_t e = 0; e < elements_of(&found->layout); e++) {
        if (!same_kind(value_at(found, e, 0), want[e]))
            fail_msg("reference: %s %lld: %Lg, by definition %Lg", what, (long long)e,
                     value_at(found, e, 0), want[e]);
    }
}

/* Where a row sees numbers alone, it has the bits that it has without all else. */
static void assert_clean(const operand *found, const operand *without, const bool *clean,
                         const char *name)
{
    for (int64_t e = 0; e < elements_of(&found->layout); e++) {
        if (clean[e] && memcmp(element_at(found, e), element_at(without, e),
                               (size_t)bytes_of(found->layout.dtype)) != 0)
            fail_msg("%s: element %lld: %Lg, without what it does not see %Lg", name, (long long)e,
                     value_at(found, e, 0), value_at(without, e, 0));
    }
}

/* The reference by definition, and every row of the dtype as the reference. */
static void check(call *c, int32_t threads)
{
    call want = twin_of(c, results, RESULTS), clean = cleaned(c, key_sides, KEY_SIDES);
    definition is = definition_of(c);
    call_compute(&want, 1);
    assert_defined(&want.o[TN_ATTENTION_OUT], is.out, "out");
    assert_defined(&want.o[TN_ATTENTION_LSE], is.lse, "lse");
    for (int n = 0; n < row_count; n++) {
        if (!takes(rows[n], c))
            continue;
        call found = twin_of(c, results, RESULTS), without = twin_of(&clean, results, RESULTS);
        compute_by(rows[n], &found, threads);
        compute_by(rows[n], &without, threads);
        for (int i = 0; i < RESULTS; i++)
            assert_kinds(&found.o[results[i]], &want.o[results[i]], results[i], rows[n]);
        assert_clean(&found.o[TN_ATTENTION_OUT], &without.o[TN_ATTENTION_OUT], is.clean,
                     rows[n]->name);
        twin_drop(&found, results, RESULTS);
        twin_drop(&without, results, RESULTS);
    }
    definition_drop(&is);
    twin_drop(&clean, key_sides, KEY_SIDES);
    twin_drop(&want, results, RESULTS);
}

static void every_way_to_exclude_a_key(void **state)
{
    static const int64_t queries[] = {1, 3, 20, 45};
    const int turns = test_reduced() ? 1 : 4;
    (void)state;
    find_all();
    for (int turn = 0; turn < turns * WAYS * 4; turn++) {
        if (!test_sampled((uint64_t)turn, 3))
            continue;
        const int64_t keys = turn % 7 == 6 ? 300 : 53;
        call c = excluding_call(floats[turn % 4], 2, queries[dice(4)], keys, turn / 4 % WAYS);
        const oddity odd = roll_oddity();
        TN_PARAMS_MUTABLE(&c.op, attention)->dropout = dice(4) ? 0 : 0.5;
        TN_PARAMS_MUTABLE(&c.op, attention)->softcap = dice(5) ? 0 : 3;
        if (dice(4) == 0)
            c.o[TN_ATTENTION_SINKS] = make_random(TN_F32, 1, (const int64_t[]){2}, DENSE);
        put_oddity(&c, &odd);
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

/* Keys on pages, and sequences one behind the other. */
static void tables(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < (test_reduced() ? 16 : 96); turn++) {
        if (!test_sampled((uint64_t)turn, 3))
            continue;
        const oddity odd = roll_oddity();
        call c = excluding_call(floats[turn % 4], 2, 1 + (int64_t)dice(20), 40, turn / 8 % 4);
        const bool paged = turn / 4 % 2, packed = dice(2);
        if (paged)
            roll_pages(&c);
        if (packed || !paged)
            roll_packed(&c, paged);
        if (paged)
            roll_lengths(&c);
        for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++)
            call_lay(&c, o, DENSE);
        put_oddity(&c, &odd);
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

/* A bias brings the weight of a key to 0, the first or a later one, or a sink those of all keys: what the row sees goes
 * into it all the same. A NaN makes a NaN of it; an infinity, by a weight that is 0 in some precision and not in another,
 * anything but a number. */
static void weights_that_underflow(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < 64; turn++) {
        const int64_t queries = turn / 4 % 2 ? 1 : 40, keys = turn / 8 % 2 ? 300 : 20;
        const int64_t shape[] = {1, 1, queries, keys}, odd = turn / 16 % 2 ? keys / 2 : 0;
        call c = call_of(floats[turn % 4], 1, 1, 1, queries, keys, 16, 32);
        operand *mask = &c.o[TN_ATTENTION_MASK];
        if (turn < 32) {
            *mask = make(TN_F32, 4, shape, DENSE);
            for (int64_t e = 0; e < elements_of(&mask->layout); e++)
                put_number(mask, e, e % keys == odd ? -9000 : 0);
        } else {
            c.o[TN_ATTENTION_SINKS] = make(TN_F32, 1, shape, DENSE);
            put_number(&c.o[TN_ATTENTION_SINKS], 0, 9000);
        }
        for (int64_t d = 0; d < 32; d++)
            put_number(&c.o[TN_ATTENTION_V], odd * 32 + d, d % 2 ? (double)NAN : (double)INFINITY);
        for (int n = -1; n < row_count; n++) {
            if (n >= 0 && !takes(rows[n], &c))
                continue;
            if (n < 0)
                call_compute(&c, 1);
            else
                compute_by(rows[n], &c, 2);
            for (int64_t e = 0; e < queries * 32; e++) {
                const long double x = value_at(&c.o[TN_ATTENTION_OUT], e, 0);
                assert_true(e % 2 ? is_nan(x) : is_nan(x) || (is_inf(x) && x > 0));
            }
        }
        call_drop(&c);
    }
}

/* A row whose scores are all -infinity is 0 and has the lse of its sink, whatever the values are. */
static void scores_of_minus_infinity(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < 16; turn++) {
        const int64_t queries = turn / 4 % 2 ? 1 : 40;
        call c = call_of(floats[turn % 4], 1, 1, 1, queries, 33, 1, 16);
        if (turn / 8)
            c.o[TN_ATTENTION_SINKS] = make_random(TN_F32, 1, (const int64_t[]){1}, DENSE);
        for (int64_t i = 0; i < queries; i++)
            put_number(&c.o[TN_ATTENTION_Q], i, -(double)INFINITY);
        for (int64_t j = 0; j < 33; j++) { /* all above 0 */
            char *at = element_at(&c.o[TN_ATTENTION_K], j);
            at[bytes_of(floats[turn % 4]) - 1] &= 0x7F;
            put_number(&c.o[TN_ATTENTION_V], j * 16 + 3, (double)NAN);
        }
        for (int n = -1; n < row_count; n++) {
            if (n >= 0 && !takes(rows[n], &c))
                continue;
            if (n < 0)
                call_compute(&c, 1);
            else
                compute_by(rows[n], &c, 2);
            for (int64_t e = 0; e < queries * 16; e++)
                assert_true(value_at(&c.o[TN_ATTENTION_OUT], e, 0) == 0);
            for (int64_t i = 0; i < queries; i++)
                assert_true(
                    value_at(&c.o[TN_ATTENTION_LSE], i, 0) ==
                    (turn / 8 ? value_at(&c.o[TN_ATTENTION_SINKS], 0, 0) : -(long double)INFINITY));
        }
        call_drop(&c);
    }
}

/* The last of four sequences by itself, in the results' own memory. */
static call last_of(const call *c)
{
    call last = *c;
    TN_PARAMS_MUTABLE(&last.op, attention)->batch = 1;
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LENGTHS; o++) {
        if (!c->o[o].layout.dtype || o == TN_ATTENTION_SINKS)
            continue;
        last.o[o].layout.shape[0] = 1;
        last.o[o].first += 3 * c->o[o].layout.stride[0] * bytes_of(c->o[o].layout.dtype);
    }
    return last;
}

static void assert_same_bits(const call *a, const call *b, const char *name, const char *what)
{
    for (int i = 0; i < RESULTS; i++) {
        const operand *of = &b->o[results[i]];
        const int64_t count = elements_of(&of->layout), all = elements_of(&a->o[results[i]].layout);
        for (int64_t e = 0; e < count; e++) /* of a's last */
            if (memcmp(element_at(&a->o[results[i]], all - count + e), element_at(of, e),
                       (size_t)bytes_of(of->layout.dtype)) != 0)
                fail_msg("%s: operand %d, element %lld: other bits %s", name, (int)results[i],
                         (long long)e, what);
    }
}

/* Rows that promise it give the same bits on 1 to 4 threads, and alone as in a batch of four. */
static void threads_and_batches_change_no_bit(void **state)
{
    static const int64_t sizes[][2] = {{40, 40}, {45, 300}, {90, 53}, {3, 300}};
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION, floats, TN_NUM_BATCH_INVARIANT, 0);
    for (int turn = 0; turn < (test_reduced() ? 1 : 3) * WAYS * 4; turn++) {
        if (!test_sampled((uint64_t)turn, 4))
            continue;
        const int64_t *s = sizes[dice(4)];
        call c = excluding_call(floats[turn % 4], 4, s[0], s[1], turn / 4 % WAYS);
        const oddity odd = roll_oddity();
        put_oddity(&c, &odd);
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            call one = twin_of(&c, results, RESULTS);
            compute_by(rows[n], &one, 1);
            for (int32_t threads = 2; threads <= 4; threads++) {
                call many = twin_of(&c, results, RESULTS);
                compute_by(rows[n], &many, threads);
                assert_same_bits(&one, &many, rows[n]->name, "on other threads");
                twin_drop(&many, results, RESULTS);
            }
            call alone = last_of(&c);
            compute_by(rows[n], &alone, 1 + (int32_t)dice(4));
            assert_same_bits(&one, &alone, rows[n]->name, "in another batch");
            twin_drop(&one, results, RESULTS);
        }
        call_drop(&c);
    }
}

/* A NaN in one element of V, in a causal problem that two threads cut between other rows than one does. */
static void a_nan_behind_the_rows(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION, floats, TN_NUM_BATCH_INVARIANT, 0);
    for (int turn = 0; turn < 4; turn++) {
        call c = call_of(floats[turn], 1, 1, 1, 40, 40, 16, 16);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = 0;
        put_number(&c.o[TN_ATTENTION_V], 30 * 16, (double)NAN);
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            call one = twin_of(&c, results, RESULTS), two = twin_of(&c, results, RESULTS);
            compute_by(rows[n], &one, 1);
            compute_by(rows[n], &two, 2);
            assert_same_bits(&one, &two, rows[n]->name, "on two threads");
            for (int64_t e = 0; e < 40 * 16; e++)
                assert_int_equal(is_nan(value_at(&one.o[TN_ATTENTION_OUT], e, 0)),
                                 e % 16 == 0 && e / 16 >= 30);
            twin_drop(&one, results, RESULTS);
            twin_drop(&two, results, RESULTS);
        }
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_exclude_a_key),
        cmocka_unit_test(tables),
        cmocka_unit_test(weights_that_underflow),
        cmocka_unit_test(scores_of_minus_infinity),
        cmocka_unit_test(threads_and_batches_change_no_bit),
        cmocka_unit_test(a_nan_behind_the_rows),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_nonfinite", tests);
}
