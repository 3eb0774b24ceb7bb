/* The processor's own attention of bf16 and f16, every row that runs here, by the criterion of FlashAttention's
 * tests: the greatest error, against the reference's f64, is at most twice that of the formula evaluated
 * plainly in the operands' dtype. Rows that do not run here are named. */
#include "attention_plain.h"
#include "cpu_attention_make.h"

/* Those whose sums are f32; what keeps them narrower is looked at in cpu_attention_math. */
static void find_low_rows(void)
{
    static const tn_dtype of[] = {TN_BF16, TN_F16, 0};
    assert_true(find_rows_of(TN_OP_ATTENTION, of, 0, TN_NUM_REDUCED_REDUCTION) >= 2);
}

static tn_dtype half_of(const tn_kernel_row *row)
{
    return computes_with(row, TN_BF16) ? TN_BF16 : TN_F16;
}

/* Scores are summed in f32, and powers of two are within 2^-18. */
static void assert_lse(const tn_kernel_row *row, const call *found, const call *want)
{
    const tn_attention_op *at = TN_PARAMS(&found->op, attention);
    const long double score = fabsl((long double)at->scale) * (long double)at->size * 16;
    for (int64_t e = 0; e < elements_of(&want->o[TN_ATTENTION_LSE].layout); e++) {
        const long double x = value_at(&found->o[TN_ATTENTION_LSE], e, 0);
        const long double y = value_at(&want->o[TN_ATTENTION_LSE], e, 0);
        const long double slack = 0x1p-17L + 0x1p-24L * (64 + 8 * score + 4 * fabsl(y));
        if (!(is_nan(x) && is_nan(y)) && (is_inf(y) ? x != y : !(fabsl(x - y) <= slack)))
            fail_msg("%s: lse %lld: %Lg is not %Lg, off by %Lg of %Lg", row->name, (long long)e, x,
                     y, x - y, slack);
    }
}

/* What roundings of a call's weights go by: its greatest result, of few results the greatest value there may be, as
 * all of them may be small by chance. */
static double size_of(const call *c, double most)
{
    enum { FEW = 64, GREATEST = 4 };
    const double value = GREATEST / (1 - TN_PARAMS(&c->op, attention)->dropout);
    return elements_of(&c->o[TN_ATTENTION_OUT].layout) < FEW && value > most ? value : most;
}

/* Every row of the dtype is near the reference, and writes nothing else. `roundings` of the dtype are let
 * pass beside twice the plain evaluation's error, where that may be 0 by chance. */
static void check(const call *c, int32_t threads, double roundings)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    call want = other_of(c, TN_F32, DENSE);
    double most, plain;
    call_compute(&want, 1);
    plain = plain_error(c, &want, &most);
    for (int n = 0; n < row_count; n++) {
        if (!takes(rows[n], c))
            continue;
        call found = other_of(c, 0, (int)dice(REPEATED));
        compute_by(rows[n], &found, threads);
        assert_out(rows[n], &found, &want,
                   2 * plain + roundings * (double)ulp(dtype, (long double)size_of(c, most)) +
                       1e-7);
        if (c->o[TN_ATTENTION_LSE].layout.dtype)
            assert_lse(rows[n], &found, &want);
        for (int i = 0; i < WRITTEN; i++) {
            if (c->o[written[i]].layout.dtype)
                assert_outside_untouched(&found.o[written[i]]);
        }
        other_drop(&found);
    }
    other_drop(&want);
}

static call roll_call(void)
{
    const tn_dtype dtype = dice(3) ? TN_BF16 : TN_F16;
    const int64_t groups = 1 + (int64_t)dice(2), sharers = 1 + (int64_t)dice(dice(2) ? 3 : 1);
    const int64_t size = roll_size(70);
    call c =
        call_of(dtype, 1 + (int64_t)dice(2), groups * sharers, groups, roll_size(dice(8) ? 30 : 4),
                roll_size(dice(3) ? 140 : 300), size, dice(2) ? size : roll_size(70));
    const bool paged = dice(4) == 0, packed = dice(4) == 0;
    if (dice(3) == 0)
        drop(&c.o[TN_ATTENTION_LSE]);
    if (dice(3) == 0)
        c.o[TN_ATTENTION_OUT].layout.dtype = TN_F32;
    roll_features(&c, paged, packed);
    return c;
}

static void any_op_is_near_the_reference(void **state)
{
    const int turns = test_fewest() ? 12 : test_reduced() ? 40 : test_full() ? 600 : 120;
    (void)state;
    for (int turn = 0; turn < turns; turn++) {
        call c = roll_call();
        check(&c, 1 + (int32_t)dice(4), 1);
        call_drop(&c);
    }
}

/* Lengths and sizes at those of squares, panels, items and blocks, and beside them. */
static void sizes_at_edges(void **state)
{
    static const int64_t edges[] = {31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257};
    const int turns = test_fewest() ? 2 : test_reduced() ? 4 : test_full() ? 24 : 8;
    (void)state;
    for (int turn = 0; turn < turns; turn++) {
        const int64_t queries = edges[turn % 12], keys = edges[dice(12)];
        const int64_t size = edges[dice(9)], value_size = dice(2) ? size : edges[dice(9)];
        call c = call_of(turn % 3 ? TN_BF16 : TN_F16, 1, 2, 1, queries, keys, size, value_size);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = 1 / sqrt((double)size);
        if (dice(2)) {
            TN_PARAMS_MUTABLE(&c.op, attention)->right = 0;
            TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
        }
        check(&c, 2, 0);
        call_drop(&c);
    }
}

/* With nothing let pass beside: some hundred rows of each mask, so that the plain evaluation's error is no chance. */
static void errors_are_those_of_the_formula(void **state)
{
    static const int64_t sizes[][3] = {{113, 203, 64}, {128, 217, 128}, {70, 500, 40}};
    (void)state;
    const uint64_t before = dice_hold();
    for (int turn = 0; turn < 2 * MASKS * 3; turn += test_fewest()                    ? 11
                                                     : test_full() && !test_reduced() ? 1
                                                                                      : 5) {
        const int64_t *s = sizes[turn % 3];
        call c = call_of(turn / 3 % 2 ? TN_F16 : TN_BF16, 1, 2, 1, s[0], s[1], s[2], s[2]);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = 1 / sqrt((double)s[2]);
        put_mask(&c, turn / 6);
        check(&c, 2, 0);
        call_drop(&c);
    }
    dice_state = before;
}

/* The largest heads, and many keys for few queries: those are split. */
static void long_rows_and_many_keys(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn += test_fewest() ? 3 : 1) {
        const tn_dtype dtype = turn % 2 ? TN_F16 : TN_BF16;
        call large = call_of(dtype, 1, 1, 1, 9, 70, 512, 512);
        call many = call_of(dtype, 1, 4, 1, turn < 2 ? 1 : 9, test_reduced() ? 1100 : 3333, 40, 24);
        TN_PARAMS_MUTABLE(&large.op, attention)->scale = 1 / sqrt(512.0);
        TN_PARAMS_MUTABLE(&many.op, attention)->scale = 1 / sqrt(40.0);
        check(&large, 2, 0);
        check(&many, 3, 0);
        call_drop(&large);
        call_drop(&many);
    }
}

/* One number in all elements of a row of bf16. */
static void fill_row(operand *o, int64_t row, double value)
{
    const int64_t size = o->layout.shape[o->layout.rank - 1];
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    for (int64_t e = 0; e < size; e++)
        store_bits(element_at(o, row * size + e), 2, bits >> 16);
}

/* Scores from -90 to 90, growing, falling and mixed: what was summed before shrinks, again and again. */
static void far_scores(void **state)
{
    enum { KEYS = 400, QUERIES = 40 };
    (void)state;
    const uint64_t before =
        dice_hold(); /* two rows alone differ: the plain evaluation's error is chance */
    for (int turn = 0; turn < 3; turn++) {
        call c = call_of(TN_BF16, 1, 1, 1, QUERIES, KEYS, 32, 32);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = 1;
        for (int64_t i = 0; i < QUERIES; i++)
            fill_row(&c.o[TN_ATTENTION_Q], i, i % 2 ? 1 : -0.5);
        for (int64_t j = 0; j < KEYS; j++) {
            const int64_t place = turn == 0 ? j : turn == 1 ? KEYS - j : j * 37 % KEYS;
            fill_row(&c.o[TN_ATTENTION_K], j, ((double)place / (KEYS / 2) - 1) * 2.8125);
        }
        check(&c, 1, 0);
        call_drop(&c);
    }
    dice_state = before;
}

static void numbers_that_f32_does_not_hold(void **state)
{
    (void)state;
    check_numbers_refused(TN_BF16);
    check_numbers_refused(TN_F16);
}

/* Scores that are finite and great: the greatest of a row has its weight all the same. */
static void great_scores(void **state)
{
    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        for (const double *value = great_scores_of(TN_F32); *value != 0; value++) {
            const tn_dtype dtype = turn / 2 ? TN_F16 : TN_BF16;
            call c = call_of(dtype, 1, 2, 1, turn % 2 ? 70 : 1, 70, 3, 40);
            put_great_scores(&c, *value);
            check(&c, 2, 1);
            call_drop(&c);
        }
    }
}

/* Roundings of weights to their dtype even out: values of 1 give 1. A row has 1500 of them, all have 40 times as many;
 * cut off instead of rounded they would be 2^-9.5 less. */
static void weights_are_rounded_to_nearest(void **state)
{
    enum { KEYS = 1500, QUERIES = 40 };
    (void)state;
    for (int n = 0; n < row_count; n++) {
        call c = call_of(half_of(rows[n]), 1, 1, 1, QUERIES, KEYS, 16, 16);
        call found = other_of(&c, TN_F32, DENSE);
        const uint64_t one = half_of(rows[n]) == TN_BF16 ? 0x3f80 : 0x3c00;
        for (int64_t e = 0; e < KEYS * 16; e++)
            store_bits(element_at(&c.o[TN_ATTENTION_V], e), 2, one);
        TN_PARAMS_MUTABLE(&found.op, attention)->scale = 0.05; /* so that none of them stands out */
        compute_by(rows[n], &found, 1);
        long double mean = 0;
        for (int64_t e = 0; e < QUERIES * 16; e++) {
            const long double off = value_at(&found.o[TN_ATTENTION_OUT], e, 0) - 1;
            assert_true(fabsl(off) < 0x1p-9L);
            mean += off / (QUERIES * 16);
        }
        assert_true(fabsl(mean) < 0x1p-12L);
        other_drop(&found);
        call_drop(&c);
    }
}

static void put_bool(operand *o, int64_t index, bool value)
{
    store_bits(element_at(o, index), 1, value);
}

/* Of every three rows the second sees nothing, by a mask of bool or of floats. */
static call hiding_call(tn_dtype dtype, int64_t queries, bool of_bool)
{
    call c = call_of(dtype, 1, 2, 2, queries, 90, 16, 16);
    const int64_t shape[] = {1, 2, queries, 90};
    operand *mask = &c.o[TN_ATTENTION_MASK];
    *mask = make_random(of_bool ? TN_BOOL : TN_F32, 4, shape, DENSE);
    for (int64_t n = 0; n < 2 * queries * 90; n++) {
        const bool hidden = n / 90 % 3 == 1;
        if (of_bool)
            put_bool(mask, n, !hidden && n % 90 != 5);
        else if (hidden)
            put_number(mask, n, -(double)INFINITY);
    }
    return c;
}

/* Those are 0 and -infinity, to the bit. */
static void rows_that_see_nothing(void **state)
{
    (void)state;
    for (int turn = 0; turn < 8 * row_count; turn++) {
        const tn_kernel_row *row = rows[turn / 8];
        const int64_t queries = turn % 2 ? 70 : 3;
        call c = hiding_call(half_of(row), queries, turn / 2 % 2), found = other_of(&c, 0, DENSE);
        compute_by(row, &found, 2);
        for (int64_t r = 0; r < 2 * queries; r++) {
            const long double lse = value_at(&found.o[TN_ATTENTION_LSE], r, 0);
            assert_true((lse == -(long double)INFINITY) == (r % 3 == 1));
            for (int64_t e = r * 16; e < r * 16 + 16 && r % 3 == 1; e++)
                assert_int_equal(load_bits(element_at(&found.o[TN_ATTENTION_OUT], e), 2), 0);
        }
        check(&c, 1, 1);
        other_drop(&found);
        call_drop(&c);
    }
}

/* Keys and values that no query sees, with anything in them. */
static call odd_call(tn_dtype dtype, int64_t queries, double odd)
{
    call c = call_of(dtype, 1, 1, 1, queries, 100, 33, 20);
    const int64_t shape[] = {1, 1, queries, 100};
    c.o[TN_ATTENTION_MASK] = make_random(TN_BOOL, 4, shape, DENSE);
    for (int64_t n = 0; n < queries * 100; n++)
        put_bool(&c.o[TN_ATTENTION_MASK], n, n % 100 != 40 && n % 100 != 80);
    for (int64_t e = 0; e < 33; e++)
        put_number(&c.o[TN_ATTENTION_K], 40 * 33 + e, odd);
    for (int64_t e = 0; e < 20; e++)
        put_number(&c.o[TN_ATTENTION_V], 80 * 20 + e, odd);
    return c;
}

/* They change nothing; where one row sees a NaN, it becomes one and no other does. */
static void odd_numbers(void **state)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    (void)state;
    for (int turn = 0; turn < 6 * row_count; turn++) {
        const tn_kernel_row *row = rows[turn / 6];
        const int64_t queries = turn % 2 ? 70 : 2;
        call c = odd_call(half_of(row), queries, odd[turn % 3]);
        check(&c, 2, 1);
        put_bool(&c.o[TN_ATTENTION_MASK], 100 + 40, true); /* query 1 sees key 40 */
        put_number(&c.o[TN_ATTENTION_K], 40 * 33, (double)NAN);
        call found = other_of(&c, 0, DENSE);
        compute_by(row, &found, 2);
        for (int64_t e = 0; e < queries * 20; e++)
            assert_int_equal(is_nan(value_at(&found.o[TN_ATTENTION_OUT], e, 0)), e / 20 == 1);
        for (int64_t r = 0; r < queries; r++)
            assert_int_equal(is_nan(value_at(&found.o[TN_ATTENTION_LSE], r, 0)), r == 1);
        other_drop(&found);
        call_drop(&c);
    }
}

/* The first `count` rows. */
static void assert_same_bits(const tn_kernel_row *row, const call *a, const call *b, int64_t count)
{
    const int64_t size = TN_PARAMS(&a->op, attention)->value_size;
    for (int64_t e = 0; e < count * size; e++) {
        if (load_bits(element_at(&a->o[TN_ATTENTION_OUT], e), 2) !=
            load_bits(element_at(&b->o[TN_ATTENTION_OUT], e), 2))
            fail_msg("%s: element %lld differs", row->name, (long long)e);
    }
    for (int64_t e = 0; e < count; e++)
        assert_int_equal(load_bits(element_at(&a->o[TN_ATTENTION_LSE], e), 4),
                         load_bits(element_at(&b->o[TN_ATTENTION_LSE], e), 4));
}

/* A batch's first sequence alone. */
static call first_of(const call *c)
{
    call first = other_of(c, 0, DENSE);
    TN_PARAMS_MUTABLE(&first.op, attention)->batch = 1;
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++)
        first.o[o].layout.shape[0] = 1;
    return first;
}

/* However many threads there are, and whatever else is in the batch. */
static void threads_and_batch_change_no_bit(void **state)
{
    static const int64_t shapes[][5] = {
        {3, 2, 300, 300, 64}, {1, 1, 700, 140, 40}, {1, 2, 1, 2500, 32}, {9, 3, 40, 50, 24}};
    (void)state;
    for (int turn = 0; turn < 4 * row_count; turn++) {
        const tn_kernel_row *row = rows[turn / 4];
        const int64_t *z = shapes[turn % 4];
        call c = call_of(half_of(row), z[0], z[1], 1, z[2], z[3], z[4], z[4]);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = turn % 2 ? 0 : -1;
        TN_PARAMS_MUTABLE(&c.op, attention)->left = turn % 4 == 1 ? 60 : -1;
        TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
        call one = other_of(&c, 0, DENSE), first = first_of(&c);
        compute_by(row, &one, 1);
        for (int32_t threads = 2; threads <= 8; threads += threads - 1) {
            call many = other_of(&c, 0, DENSE);
            compute_by(row, &many, threads);
            assert_same_bits(row, &one, &many, z[0] * z[1] * z[2]);
            other_drop(&many);
        }
        compute_by(row, &first, 2);
        assert_same_bits(row, &one, &first, z[1] * z[2]);
        other_drop(&first);
        other_drop(&one);
        call_drop(&c);
    }
}

static void assert_refused(call *c, const char *what, int32_t code, int64_t needed, int64_t found)
{
    const tn_query query = {.struct_size = sizeof query, .op = &c->op, .threads = 1};
    for (int32_t i = 0; i < c->op.count; i++)
        c->op.operand[i] = c->o[i].layout;
    for (int n = 0; n < row_count; n++) {
        tn_refusal why = {.struct_size = sizeof why};
        if (!takes(rows[n], c))
            continue;
        assert_int_equal(rows[n]->admit(rows[n], &query, &why), TN_UNSUPPORTED);
        assert_string_equal(why.what, what);
        assert_int_equal(why.code, code);
        assert_int_equal(why.needed, needed);
        assert_int_equal(why.found, found);
    }
}

/* An operand's dtype that no row takes, in place of its own. */
static void assert_dtype_refused(call *c, int32_t which, const char *what, tn_dtype needed,
                                 tn_dtype found)
{
    const tn_dtype own = c->o[which].layout.dtype;
    c->o[which].layout.dtype = found;
    assert_refused(c, what, TN_REFUSE_DTYPE, needed, found);
    c->o[which].layout.dtype = own;
}

static void what_is_refused(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        const tn_dtype dtype = turn ? TN_F16 : TN_BF16;
        call c = call_of(dtype, 1, 1, 1, 2, 2, 4, 4);
        assert_dtype_refused(&c, TN_ATTENTION_K, "k", dtype, TN_F32);
        assert_dtype_refused(&c, TN_ATTENTION_V, "v", dtype, TN_F64);
        assert_dtype_refused(&c, TN_ATTENTION_OUT, "out", dtype, TN_F64);
        assert_dtype_refused(&c, TN_ATTENTION_LSE, "lse", TN_F32, TN_F64);
        TN_PARAMS_MUTABLE(&c.op, attention)->size = 513;
        assert_refused(&c, "size", TN_REFUSE_SHAPE, 512, 513);
        TN_PARAMS_MUTABLE(&c.op, attention)->size = 0;
        assert_refused(&c, "size", TN_REFUSE_SHAPE, 1, 0);
        TN_PARAMS_MUTABLE(&c.op, attention)->size = 512;
        TN_PARAMS_MUTABLE(&c.op, attention)->value_size = 513;
        assert_refused(&c, "value_size", TN_REFUSE_SHAPE, 512, 513);
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_op_is_near_the_reference),
        cmocka_unit_test(sizes_at_edges),
        cmocka_unit_test(errors_are_those_of_the_formula),
        cmocka_unit_test(long_rows_and_many_keys),
        cmocka_unit_test(far_scores),
        cmocka_unit_test(great_scores),
        cmocka_unit_test(numbers_that_f32_does_not_hold),
        cmocka_unit_test(weights_are_rounded_to_nearest),
        cmocka_unit_test(rows_that_see_nothing),
        cmocka_unit_test(odd_numbers),
        cmocka_unit_test(threads_and_batch_change_no_bit),
        cmocka_unit_test(what_is_refused),
    };
    dice_begin();
    find_low_rows();
    return run_suite("kernels.cpu_attention_low", tests);
}
