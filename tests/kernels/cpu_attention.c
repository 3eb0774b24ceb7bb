/* The processor's own attention of f32 and f64, every row that runs here, against the reference. */
#include "cpu_attention_make.h"

#include <sys/mman.h>

static const int32_t results[] = {TN_ATTENTION_OUT, TN_ATTENTION_LSE};
enum { RESULTS = 2 };

/* Every row gives what the reference does, and writes nothing else. */
static void check(call *c, int32_t threads)
{
    call want = twin_of(c, results, RESULTS);
    call_compute(&want, 1);
    for (int n = 0; n < row_count; n++) {
        if (!takes(rows[n], c))
            continue;
        call found = twin_of(c, results, RESULTS);
        for (int i = 0; i < RESULTS; i++) {
            operand *o = &found.o[results[i]];
            if (!o->layout.dtype)
                continue;
            const tn_layout like = o->layout;
            drop(o);
            *o = make_poisoned(like.dtype, like.rank, like.shape, (int)dice(REPEATED));
        }
        compute_by(rows[n], &found, threads);
        for (int i = 0; i < RESULTS; i++) {
            if (!c->o[results[i]].layout.dtype)
                continue;
            assert_close(&found, &want, results[i], rows[n]->name);
            assert_outside_untouched(&found.o[results[i]]);
        }
        twin_drop(&found, results, RESULTS);
    }
    twin_drop(&want, results, RESULTS);
}

static call roll_call(void)
{
    const tn_dtype dtype = reals[dice(2)];
    const int64_t groups = 1 + (int64_t)dice(3), sharers = 1 + (int64_t)dice(dice(2) ? 3 : 1);
    const int64_t size = roll_size(70);
    call c =
        call_of(dtype, 1 + (int64_t)dice(3), groups * sharers, groups, roll_size(dice(3) ? 40 : 4),
                roll_size(140), size, dice(2) ? size : roll_size(70));
    const bool paged = dice(4) == 0, packed = dice(4) == 0;
    if (dice(3) == 0)
        drop(&c.o[TN_ATTENTION_LSE]);
    roll_features(&c, paged, packed);
    return c;
}

static void any_op_is_that_of_the_reference(void **state)
{
    const int turns = test_fewest() ? 30 : test_reduced() ? 100 : test_full() ? 1200 : 120;
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < turns; turn++) {
        call c = roll_call();
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

/* One below, at and one above tiles, panels, blocks of keys and the rows that are few. */
static void sizes_at_edges(void **state)
{
    static const int64_t lengths[] = {1, 5, 6, 7, 8, 9, 13, 14, 15, 31, 32, 33, 63, 64, 65};
    static const int64_t long_ones[] = {255, 256, 257, 512, 513};
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int n = 0; n < 15; n++) {
        for (int m = 0; m < 20; m++) {
            if (!test_sampled((uint64_t)(n * 20 + m), 4))
                continue;
            const int64_t keys = m < 15 ? lengths[m] : long_ones[m - 15];
            call c = call_of(reals[m % 2], 1, 1, 1, lengths[n], keys, lengths[(n + m) % 15],
                             lengths[(n * 3 + m) % 15]);
            if ((n + m) % 3 == 0) {
                TN_PARAMS_MUTABLE(&c.op, attention)->right = 0;
                TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
            }
            check(&c, 2);
            call_drop(&c);
        }
    }
}

/* Blocks, parts and tasks of several: rows that are many, few with many keys, heads that are many. */
static void long_ones(void **state)
{
    static const int64_t sizes[][6] = {{1, 1, 1, 300, 700, 20}, {1, 2, 1, 3, 2500, 16},
                                       {2, 1, 1, 1, 1025, 33},  {40, 2, 2, 20, 30, 8},
                                       {1, 1, 1, 20, 70000, 2}, {1, 8, 1, 1, 70000, 3}};
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int n = 0; n < (test_reduced() ? 4 : 6); n++) {
        const int64_t *s = sizes[n];
        for (int turn = 0; turn < 3; turn++) {
            if (!test_sampled((uint64_t)(n * 3 + turn), n < 4 ? 2 : 6))
                continue;
            call c = call_of(reals[turn % 2], s[0], s[1], s[2], s[3], s[4], s[5], s[5]);
            TN_PARAMS_MUTABLE(&c.op, attention)->right = turn == 1 ? 0 : -1;
            TN_PARAMS_MUTABLE(&c.op, attention)->left = turn == 2 ? s[4] / 3 : -1;
            TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
            check(&c, 3);
            call_drop(&c);
        }
    }
}

/* The same bits on any number of threads, and in any batch. */
static void threads_and_batches_change_no_bit(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < (test_reduced() ? 3 : test_full() ? 12 : 4); turn++) {
        static const int64_t sizes[][2] = {{50, 300}, {300, 90}, {2, 3000}};
        const int64_t *s = sizes[turn % 3];
        call c = call_of(reals[turn % 2], 3, 4, turn % 4 < 2 ? 4 : 2, s[0], s[1], 24, 40);
        roll_wide_window(TN_PARAMS_MUTABLE(&c.op, attention));
        for (int n = 0; n < row_count; n++) {
            call one = twin_of(&c, results, RESULTS), last;
            compute_by(rows[n], &one, 1);
            for (int32_t threads = 2; threads < 18; threads += 5) {
                call many = twin_of(&c, results, RESULTS);
                compute_by(rows[n], &many, threads);
                for (int i = 0; i < RESULTS; i++)
                    assert_memory_equal(one.o[results[i]].memory, many.o[results[i]].memory,
                                        one.o[results[i]].size);
                twin_drop(&many, results, RESULTS);
            }
            last = c; /* the last sequence by itself */
            TN_PARAMS_MUTABLE(&last.op, attention)->batch = 1;
            for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++) {
                last.o[o].layout.shape[0] = 1;
                last.o[o].first += 2 * c.o[o].layout.stride[0] * bytes_of(c.o[o].layout.dtype);
            }
            compute_by(rows[n], &last, 2);
            for (int i = 0; i < RESULTS; i++) {
                const operand *of = &last.o[results[i]];
                const size_t bytes =
                    (size_t)(elements_of(&of->layout) * bytes_of(of->layout.dtype));
                assert_memory_equal(of->first,
                                    one.o[results[i]].first + (of->first - c.o[results[i]].first),
                                    bytes);
            }
            twin_drop(&one, results, RESULTS);
        }
        call_drop(&c);
    }
}

static double plain_exp(double x)
{
    return (double)expf((float)x);
}

/* What is added to a score: -infinity where query i of head h does not see key j. */
static float plain_mask(const call *c, int64_t h, int64_t i, int64_t j)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const operand *mask = &c->o[TN_ATTENTION_MASK];
    int64_t first, count = tn_attention_seen(at, i, at->queries, at->keys, &first);
    if (j < first || j >= first + count)
        return -INFINITY;
    if (!mask->layout.dtype)
        return 0;
    const long double x = value_at(mask, (h * at->queries + i) * at->keys + j, 0);
    return mask->layout.dtype == TN_BOOL ? (x != 0 ? 0 : -INFINITY) : (float)x;
}

/* A row by the formula, each step rounded to f32. */
static void plain_row(const call *c, int64_t h, int64_t i, float *score, float *out)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const float *q = (const float *)(const void *)c->o[TN_ATTENTION_Q].first;
    const float *k = (const float *)(const void *)c->o[TN_ATTENTION_K].first;
    const float *v = (const float *)(const void *)c->o[TN_ATTENTION_V].first;
    float greatest = -INFINITY, sum = 0;
    q += (h * at->queries + i) * at->size;
    k += h * at->keys * at->size;
    v += h * at->keys * at->value_size;
    for (int64_t j = 0; j < at->keys; j++) {
        float dot = 0;
        for (int64_t d = 0; d < at->size; d++)
            dot += q[d] * k[j * at->size + d];
        score[j] = dot * (float)at->scale + plain_mask(c, h, i, j);
        greatest = score[j] > greatest ? score[j] : greatest;
    }
    greatest = greatest == -INFINITY ? 0 : greatest;
    for (int64_t j = 0; j < at->keys; j++) {
        score[j] = (float)plain_exp((double)(score[j] - greatest));
        sum += score[j];
    }
    for (int64_t d = 0; d < at->value_size; d++) {
        out[d] = 0;
        for (int64_t j = 0; j < at->keys; j++)
            out[d] += sum > 0 ? score[j] / sum * v[j * at->value_size + d] : 0;
    }
}

/* Numbers as a normal distribution has them, times `by`. */
static void fill_normal(operand *o, double by)
{
    float *to = (float *)(void *)o->first;
    for (int64_t e = 0; e < elements_of(&o->layout); e++) {
        double sum = 0;
        for (int n = 0; n < 12; n++)
            sum += (double)dice(1 << 24) / (1 << 24) - 0.5;
        to[e] = (float)(sum * by);
    }
}

/* The greatest difference, or `so_far`; a NaN is greater than all. */
static double farthest(const float *found, const float *wanted, int64_t count, double so_far)
{
    for (int64_t i = 0; i < count; i++) {
        const double error = fabs((double)found[i] - (double)wanted[i]);
        if (so_far == so_far && !(error <= so_far))
            so_far = error;
    }
    return so_far;
}

/* The greatest error of the plain formula for a call, and of each kernel; `size` is that of heads. */
static void find_errors(call *c, int64_t size, double *plain, double *worst)
{
    const int64_t queries = TN_PARAMS(&c->op, attention)->queries,
                  keys = TN_PARAMS(&c->op, attention)->keys;
    call want = twin_of(c, results, RESULTS);
    call_compute(&want, 1);
    float *score = malloc((size_t)keys * sizeof *score), out[128];
    const float *wanted = (const float *)(const void *)want.o[TN_ATTENTION_OUT].first;
    assert_non_null(score);
    for (int64_t r = 0; r < 2 * queries; r++) {
        plain_row(c, r / queries, r % queries, score, out);
        *plain = farthest(out, wanted + r * size, size, *plain);
    }
    for (int n = 0; n < row_count; n++) {
        const float *found = (const float *)(const void *)c->o[TN_ATTENTION_OUT].first;
        compute_by(rows[n], c, 2);
        worst[n] = farthest(found, wanted, 2 * queries * size, worst[n]);
    }
    free(score);
    twin_drop(&want, results, RESULTS);
}

/* Errors are at most twice those of the plain formula in f32, scores of 80 and more included. A row's errors come
 * from those of its scores together, so that the greatest of few rows says little: there are some hundred. */
static void errors_are_those_of_the_formula(void **state)
{
    static const int64_t sizes[][3] = {
        {113, 203, 64}, {128, 217, 128}, {64, 800, 40}, {3, 799, 59}};
    enum { ROWS = 100 };
    (void)state;
    const uint64_t before = dice_hold();
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < 8 * MASKS; turn += test_full() && !test_reduced() ? 1 : 5) {
        const int64_t *s = sizes[turn % 4];
        double plain = 0, worst[sizeof rows / sizeof rows[0]] = {0};
        for (int64_t done = 0; done < ROWS; done += 2 * s[0]) {
            call c = call_of(TN_F32, 1, 2, 2, s[0], s[1], s[2], s[2]);
            TN_PARAMS_MUTABLE(&c.op, attention)->scale = 1 / sqrt((double)s[2]);
            put_mask(&c, turn / 8);
            fill_normal(&c.o[TN_ATTENTION_Q], turn / 4 % 2 ? 30 : 1);
            fill_normal(&c.o[TN_ATTENTION_K], 1);
            fill_normal(&c.o[TN_ATTENTION_V], 1);
            find_errors(&c, s[2], &plain, worst);
            call_drop(&c);
        }
        for (int n = 0; n < row_count; n++) {
            if (!(worst[n] <= 2 * plain + 1e-7))
                fail_msg("%s: off by %g, the formula by %g", rows[n]->name, worst[n], plain);
        }
    }
    dice_state = before;
}

/* Of two keys with scores 0 and x < 0 and values 0 and 1, out is w / (1 + w) with w = exp(x): as exact as w is.
 * The kernels' 2^x is off by at most 2.3 ulp of f32 and 1.3 of f64, an ulp being 2 u at most; x, log2 e times x
 * and 1 / (1 + w) are rounded, and so is the product. */
static void weights_are_as_exact_as_is_said(void **state)
{
    enum { QUERIES = 256 };
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < 8; turn++) {
        const tn_dtype dtype = reals[turn % 2];
        const long double u = dtype == TN_F64 ? 0x1p-53L : 0x1p-24L;
        const double most = turn / 2 % 2 ? 1 : dtype == TN_F64 ? 690 : 85;
        call c = call_of(dtype, 1, 1, 1, QUERIES, 2, 1, 1);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = 1;
        for (int64_t j = 0; j < 2; j++) {
            put_number(&c.o[TN_ATTENTION_K], j, (double)j);
            put_number(&c.o[TN_ATTENTION_V], j, (double)j);
        }
        for (int64_t i = 0; i < QUERIES; i++)
            put_number(&c.o[TN_ATTENTION_Q], i, -most * (double)dice(1u << 30) / (1u << 30));
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &c, 1);
            for (int64_t i = 0; i < QUERIES; i++) {
                const long double x = value_at(&c.o[TN_ATTENTION_Q], i, 0), w = expl(x);
                const long double found = value_at(&c.o[TN_ATTENTION_OUT], i, 0);
                const long double ulps = 2 * (dtype == TN_F64 ? 1.3L : 2.3L) + 4 + 3 * fabsl(x);
                if (!(fabsl(found * (1 + w) / w - 1) <= ulps * u))
                    fail_msg("%s: %Lg of %Lg, off by %Lg u", rows[n]->name, found, x,
                             (found * (1 + w) / w - 1) / u);
            }
        }
        call_drop(&c);
    }
}

static bool row_is_nan(const call *c, int64_t row)
{
    const int64_t columns = TN_PARAMS(&c->op, attention)->value_size;
    const bool nan = is_nan(value_at(&c->o[TN_ATTENTION_OUT], row * columns, 0));
    for (int64_t d = 0; d < columns; d++)
        assert_int_equal(is_nan(value_at(&c->o[TN_ATTENTION_OUT], row * columns + d, 0)), nan);
    assert_int_equal(is_nan(value_at(&c->o[TN_ATTENTION_LSE], row, 0)), nan);
    return nan;
}

/* The key at place `odd` is a NaN, in K and V; a query before it does not see it. */
static void odd_numbers_stay_with_those_who_see_them(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < 12; turn++) {
        const int64_t queries = turn % 3 ? 45 : 4, odd = turn % 3 ? 20 : 2;
        call c = call_of(reals[turn % 2], 1, 1, 1, queries, queries + 7, 17, 33);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = 0;
        for (int64_t d = 0; d < 33; d++) {
            if (d < 17)
                put_number(&c.o[TN_ATTENTION_K], odd * 17 + d, NAN);
            put_number(&c.o[TN_ATTENTION_V], odd * 33 + d, turn < 6 ? NAN : -(double)INFINITY);
        }
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &c, 2);
            for (int64_t i = 0; i < queries; i++)
                assert_int_equal(row_is_nan(&c, i), i >= odd);
        }
        call_drop(&c);
    }
}

static void rows_that_see_nothing(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < 8; turn++) {
        const int64_t queries = turn % 2 ? 60 : 6, keys = queries / 2;
        call c = call_of(reals[turn / 2 % 2], 1, 2, turn % 3 ? 1 : 2, queries, keys, 4, 19);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = 0; /* the first half lies before all keys */
        TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
        if (turn >= 4)
            c.o[TN_ATTENTION_SINKS] = make_random(TN_F32, 1, (const int64_t[]){2}, DENSE);
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &c, 2);
            for (int64_t r = 0; r < 2 * queries; r++) {
                long double lse = value_at(&c.o[TN_ATTENTION_LSE], r, 0);
                if (r % queries >= queries - keys)
                    continue;
                assert_true(lse == (turn < 4 ? -(long double)INFINITY
                                             : value_at(&c.o[TN_ATTENTION_SINKS], r / queries, 0)));
                for (int64_t d = 0; d < 19; d++)
                    assert_true(value_at(&c.o[TN_ATTENTION_OUT], r * 19 + d, 0) == 0);
            }
        }
        check(&c, 1);
        call_drop(&c);
    }
}

/* Scores of -infinity weigh nothing, those of infinity are NaNs, as with the reference. */
static void infinite_scores(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < 8; turn++) {
        const int64_t queries = turn % 2 ? 40 : 1;
        call c = call_of(reals[turn / 2 % 2], 1, 1, 1, queries, 9, 1, 4);
        for (int64_t j = 0; j < 9; j++)
            put_number(&c.o[TN_ATTENTION_K], j, 1 + (double)j);
        for (int64_t i = 0; i < queries; i += 3)
            put_number(&c.o[TN_ATTENTION_Q], i, turn < 4 ? -(double)INFINITY : (double)INFINITY);
        check(&c, 2);
        compute_by(rows[0], &c, 1);
        assert_int_equal(row_is_nan(&c, 0), turn >= 4);
        call_drop(&c);
    }
}

static void numbers_that_f32_does_not_hold(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    check_numbers_refused(TN_F32);
    check_numbers_refused(TN_F64);
}

/* Scores that are finite and great: the greatest of a row has its weight all the same. */
static void great_scores(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < 4; turn++) {
        const tn_dtype dtype = reals[turn / 2];
        for (const double *value = great_scores_of(dtype); *value != 0; value++) {
            call c = call_of(dtype, 1, 2, 1, turn % 2 ? 40 : 1, 70, 3, 4);
            put_great_scores(&c, *value);
            check(&c, 2);
            call_drop(&c);
        }
    }
}

/* Tables that do not fit are refused before anything is written. */
static void wrong_tables_are_refused(void **state)
{
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int n = 0; n < row_count; n++) {
        call c = call_of(TN_F32, 2, 1, 1, 20, 8, 4, 4);
        tn_error err = {0};
        c.o[TN_ATTENTION_LENGTHS] = make(TN_I32, 1, (const int64_t[]){2}, DENSE);
        put_i32(&c.o[TN_ATTENTION_LENGTHS], 0, 8);
        put_i32(&c.o[TN_ATTENTION_LENGTHS], 1, 9);
        assert_int_equal(run_row(rows[n], &c, 2, &err), TN_INVALID_ARGUMENT);
        assert_string_equal(err.where, rows[n]->name);
        assert_contains(err.message, "lengths[1]: expected 0 to 8, got 9");
        assert_untouched(&c);
        call_drop(&c);
    }
}

/* The bytes that a call asks for. */
static uint64_t scratch_of(const tn_kernel_row *row, call *c, int64_t length, int32_t threads)
{
    const tn_query query = {
        .struct_size = sizeof query, .op = &c->op, .threads = threads, .setting = tell_setting};
    TN_PARAMS_MUTABLE(&c->op, attention)->queries = TN_PARAMS_MUTABLE(&c->op, attention)->keys =
        length;
    for (int32_t o = 0; o < c->op.count; o++) {
        c->op.operand[o] = c->o[o].layout;
        if (c->op.operand[o].dtype)
            c->op.operand[o].shape[2] = length;
    }
    return row->workspace ? row->workspace(row, &query) : 0;
}

/* Twice the length, twice the scratch memory and no more: scores, which would be four times as much, are not kept. Of
 * the gradients there are sums in f32 for the whole of q, k and v. */
static void scratch_grows_as_lengths_do(void **state)
{
    static const tn_dtype all[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};
    static const int32_t ops[] = {TN_OP_ATTENTION, TN_OP_ATTENTION_BACKWARD};
    enum { FIRST = 1 << 12, LAST = 1 << 20, HEADS = 2, SIZE = 64 };
    (void)state;
    for (int turn = 0; turn < 2 * 4 * 2; turn++) {
        const tn_dtype dtype = all[turn / 2 % 4];
        const int32_t op = ops[turn / 8], threads = turn % 2 ? 16 : 1;
        call c = call_of(dtype, 1, HEADS, HEADS, 1, 1, SIZE, SIZE);
        c.op.kind = op;
        (void)find_rows_of(op, all, 0, 0);
        for (int n = 0; n < row_count; n++) {
            if (strstr(rows[n]->name, ".math") || !takes(rows[n], &c))
                continue;
            const uint64_t least = scratch_of(rows[n], &c, FIRST, threads);
            for (int64_t length = FIRST; length <= LAST; length *= 2) {
                const uint64_t bytes = scratch_of(rows[n], &c, length, threads);
                const uint64_t most = least * (uint64_t)(length / FIRST);
                if (bytes > most || bytes > UINT64_C(40) * HEADS * SIZE * (uint64_t)length + least)
                    fail_msg("%s on %d threads: %llu bytes for %lld, %llu for %d", rows[n]->name,
                             threads, (unsigned long long)bytes, (long long)length,
                             (unsigned long long)least, FIRST);
            }
        }
        call_drop(&c);
    }
}

/* Moves keys or values of one head to memory of which rows `first` to `end` alone can be read. */
static void show_rows(operand *o, int64_t first, int64_t end)
{
    const size_t row = (size_t)(o->layout.shape[3] * (o->layout.dtype >> 8 & 255) / 8);
    const size_t bytes = row * (size_t)o->layout.shape[2];
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    memcpy(pages, o->first, bytes);
    free(o->memory);
    *o = (operand){.layout = o->layout, .first = pages};
    const size_t before = (size_t)first * row, shown = (size_t)end * row;
    if (before > 0) /* qemu-user refuses to protect nothing */
        assert_int_equal(mprotect(pages, before, PROT_NONE), 0);
    if (shown < bytes)
        assert_int_equal(mprotect(pages + shown, bytes - shown, PROT_NONE), 0);
}

/* Whole tiles of keys that no query sees are left out: here they cannot be read. */
static void keys_out_of_sight_are_not_read(void **state)
{
    enum { QUERIES = 70, SIZE = 64 };
    const int64_t keys = test_reduced() ? 4096 : 16384, near = keys / 4;
    const int turns = test_reduced() ? 3 : 12;
    static const tn_dtype all[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION, all, 0, 0);
    for (int turn = 0; turn < turns; turn++) {
        call c = call_of(all[turn / 3], 1, 1, 1, turn % 2 ? 2 : QUERIES, keys, SIZE, SIZE);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = 0;
        TN_PARAMS_MUTABLE(&c.op, attention)->corner =
            turn % 3 ? TN_CORNER_BOTTOM_RIGHT : TN_CORNER_TOP_LEFT;
        TN_PARAMS_MUTABLE(&c.op, attention)->left = turn % 3 ? QUERIES : -1;
        TN_PARAMS_MUTABLE(&c.op, attention)->shift = turn % 3 == 2 ? -keys / 2 : 0;
        const int64_t last = turn % 3 == 0 ? near : turn % 3 == 1 ? keys : keys / 2 + near;
        const int64_t first = turn % 3 == 0 ? 0 : turn % 3 == 1 ? keys - near : keys / 2 - near;
        for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++)
            show_rows(&c.o[o], first, last);
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            compute_by(rows[n], &c, 2);
            for (int64_t i = 0; i < TN_PARAMS(&c.op, attention)->queries; i++)
                assert_false(row_is_nan(&c, i));
        }
        for (int32_t o = TN_ATTENTION_K; o <= TN_ATTENTION_V; o++)
            munmap(c.o[o].first, (size_t)(keys * SIZE * (all[turn / 3] >> 8 & 255) / 8));
        c.o[TN_ATTENTION_K] = c.o[TN_ATTENTION_V] = (operand){.first = NULL};
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_op_is_that_of_the_reference),
        cmocka_unit_test(sizes_at_edges),
        cmocka_unit_test(long_ones),
        cmocka_unit_test(threads_and_batches_change_no_bit),
        cmocka_unit_test(errors_are_those_of_the_formula),
        cmocka_unit_test(weights_are_as_exact_as_is_said),
        cmocka_unit_test(odd_numbers_stay_with_those_who_see_them),
        cmocka_unit_test(rows_that_see_nothing),
        cmocka_unit_test(infinite_scores),
        cmocka_unit_test(great_scores),
        cmocka_unit_test(numbers_that_f32_does_not_hold),
        cmocka_unit_test(keys_out_of_sight_are_not_read),
        cmocka_unit_test(wrong_tables_are_refused),
        cmocka_unit_test(scratch_grows_as_lengths_do),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention", tests);
}
