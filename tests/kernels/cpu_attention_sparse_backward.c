/* attention-sparse-backward, the reference and every row of the processor that runs here, against the formula, against
 * attention-backward with a boolean mask and against finite differences: awkward blocks, masks, lists and sizes. */
#include "tenon/module/op/attention_sparse_backward.h"

#include "attention_sparse_make.h"
#include "gradients_make.h"

static const int32_t results[] = {TN_ATTENTION_SPARSE_BACKWARD_DQ, TN_ATTENTION_SPARSE_BACKWARD_DK,
                                  TN_ATTENTION_SPARSE_BACKWARD_DV};
enum { RESULTS = 3 };

static void find_all(void)
{
    (void)find_rows_of(TN_OP_ATTENTION_SPARSE_BACKWARD, all, 0, 0);
}

/* The backward pass of a sparse call that is computed here: its operands are taken over. */
static call sparse_back_of(call *forward, int dout_layout)
{
    call_compute(forward, 2);
    call c = back_of(forward, dout_layout);
    c.op.kind = TN_OP_ATTENTION_SPARSE_BACKWARD;
    c.op.count = TN_ATTENTION_SPARSE_BACKWARD_OPERANDS;
    return c;
}

/* The same call as attention-backward with a mask. All but the mask is shared. */
static call dense_of(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const int64_t shape[] = {at->batch, at->heads, at->queries, at->keys};
    call dense = *c;
    dense.op.kind = TN_OP_ATTENTION_BACKWARD;
    dense.op.count = TN_ATTENTION_BACKWARD_OPERANDS;
    for (int32_t o = TN_ATTENTION_SPARSE_MASK; o <= TN_ATTENTION_SPARSE_SIZES; o++)
        dense.o[o] = (operand){.memory = NULL};
    dense.o[TN_ATTENTION_MASK] = make(TN_BOOL, 4, shape, DENSE);
    for (int64_t n = 0; n < elements_of(&dense.o[TN_ATTENTION_MASK].layout); n++) {
        const int64_t row = n / at->keys, group = row / at->queries;
        *element_at(&dense.o[TN_ATTENTION_MASK], n) =
            sees(c, group / at->heads, group % at->heads, row % at->queries, n % at->keys);
    }
    return dense;
}

static void assert_gradients(const call *found, const gradients *g, const char *name)
{
    for (int n = 0; n < RESULTS; n++) {
        const operand *of = &found->o[results[n]];
        const tn_dtype dtype = of->layout.dtype;
        for (int64_t e = 0; e < elements_of(&of->layout); e++) {
            const long double x = value_at(of, e, 0), y = g->want[n][e];
            long double slack = g->slack[n][e];
            if (dtype == TN_BF16 || dtype == TN_F16)
                slack += ulp(dtype, fmaxl(fabsl(x), fabsl(y)));
            if (!(fabsl(x - y) <= slack))
                fail_msg("%s: operand %d, element %lld: %Lg is not %Lg, off by %Lg of %Lg", name,
                         (int)results[n], (long long)e, x, y, x - y, slack);
        }
    }
}

/* Outputs in other layouts, poisoned. */
static call poisoned_of(const call *c)
{
    call found = *c;
    for (int n = 0; n < RESULTS; n++) {
        const tn_layout *like = &c->o[results[n]].layout;
        found.o[results[n]] =
            make_poisoned(like->dtype, like->rank, like->shape, (int)dice(REPEATED));
    }
    return found;
}

static void check(const call *c, int32_t threads)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_SPARSE_Q].layout.dtype;
    call dense = dense_of(c), by_mask = poisoned_of(&dense), by_reference = poisoned_of(c);
    gradients g = gradients_of(&dense, dtype == TN_F64 ? 0x1p-53L : 0x1p-24L);
    call_compute(&by_mask, threads);
    assert_gradients(&by_mask, &g, "attention-backward with a mask");
    call_compute(&by_reference, threads);
    assert_gradients(&by_reference, &g, "reference");
    for (int n = 0; n < row_count; n++) {
        call found = poisoned_of(c);
        compute_by(rows[n], &found, threads);
        assert_gradients(&found, &g, rows[n]->name);
        for (int i = 0; i < RESULTS; i++)
            assert_outside_untouched(&found.o[results[i]]);
        twin_drop(&found, results, RESULTS);
    }
    gradients_drop(&g);
    twin_drop(&by_reference, results, RESULTS);
    twin_drop(&by_mask, results, RESULTS);
    drop(&dense.o[TN_ATTENTION_MASK]);
}

static void any_problem_is_as_defined(void **state)
{
    const int turns = test_fewest() ? 8 : !test_full() ? 24 : test_reduced() ? 40 : 200;
    (void)state;
    find_all();
    for (int turn = 0; turn < turns; turn++) {
        call forward = roll_sparse(all[turn % 4], turn % 10 ? 60 : 300);
        call c = sparse_back_of(&forward, (int)dice(LAYOUTS));
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

/* A dense call with these lengths and blocks, whose lists are random. */
static call listed_of(tn_dtype dtype, int64_t heads, int64_t groups, const int64_t sizes[5])
{
    call c = call_of(dtype, 1, heads, groups, sizes[0], sizes[1], sizes[4], sizes[4] + 1);
    const tn_attention_op at = *TN_PARAMS(&c.op, attention);
    c.op.kind = TN_OP_ATTENTION_SPARSE;
    c.op.count = TN_ATTENTION_SPARSE_OPERANDS;
    *sparse_of(&c) = (tn_attention_sparse_op){
        at, sizes[2], sizes[3], blocks_of(at.queries, sizes[2]), blocks_of(at.keys, sizes[3])};
    put_lists(&c);
    return c;
}

/* Blocks that are smaller than a vector of rows, larger than a tile, or one for all; lengths at the edges of tiles, of
 * packed blocks of keys and of bands. */
static void sizes_at_edges(void **state)
{
    static const int64_t sizes[][5] = {{129, 257, 128, 256, 9}, {100, 1100, 1, 1, 5},
                                       {600, 40, 384, 17, 8},   {70, 513, 33, 600, 16},
                                       {1, 1, 1, 1, 1},         {300, 300, 150, 7, 33},
                                       {45, 2100, 3, 64, 4},    {400, 90, INT64_MAX / 4, 2, 6}};
    (void)state;
    find_all();
    for (int n = 0; n < 8; n++) {
        for (int turn = 0; turn < 4; turn++) {
            if (!test_sampled((uint64_t)(n * 4 + turn), n == 4 ? 1 : 8))
                continue;
            call forward = listed_of(all[turn], 2, 1 + n % 2, sizes[n]);
            sparse_of(&forward)->at.right = n % 3 ? -1 : 0;
            call c = sparse_back_of(&forward, DENSE);
            check(&c, 3);
            call_drop(&c);
        }
    }
}

static void assert_same_bits(const call *one, const call *other)
{
    for (int i = 0; i < RESULTS; i++) {
        const operand *a = &one->o[results[i]], *b = &other->o[results[i]];
        assert_memory_equal(a->first, b->first,
                            (size_t)(elements_of(&a->layout) * bytes_of(a->layout.dtype)));
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    find_all();
    for (int turn = 0; turn < (test_full() && !test_reduced() ? 12 : 4); turn++) {
        if (test_fewest() && (uint64_t)turn != test_seed() % 4)
            continue;
        static const int64_t blocks[] = {5, 16, 64, 200};
        const int64_t sizes[] = {turn % 3 ? 300 : 700, turn % 3 ? 1500 : 400, blocks[turn % 4],
                                 blocks[turn / 2 % 4], 20};
        call forward = listed_of(all[turn % 4], 2, 1 + turn / 2 % 2, sizes);
        call c = sparse_back_of(&forward, DENSE);
        for (int n = 0; n < row_count; n++) {
            call one = twin_of(&c, results, RESULTS);
            compute_by(rows[n], &one, 1);
            for (int32_t threads = 2; threads < 18; threads += 5) {
                call many = twin_of(&c, results, RESULTS);
                compute_by(rows[n], &many, threads);
                assert_same_bits(&one, &many);
                twin_drop(&many, results, RESULTS);
            }
            twin_drop(&one, results, RESULTS);
        }
        call_drop(&c);
    }
}

/* dout . out of a forward pass in f64. */
static long double loss_of(call *forward, const operand *dout)
{
    const operand *out = &forward->o[TN_ATTENTION_SPARSE_OUT];
    long double sum = 0;
    call_compute(forward, 1);
    for (int64_t e = 0; e < elements_of(&out->layout); e++)
        sum += value_at(out, e, 0) * value_at(dout, e, 0);
    return sum;
}

static void gradients_are_finite_differences(void **state)
{
    static const int64_t sizes[][5] = {{13, 17, 4, 6, 5}, {21, 9, 8, 2, 7}, {40, 50, 16, 16, 4}};
    static const double step = 1e-5;
    (void)state;
    find_all();
    for (int turn = 0; turn < 3; turn++) {
        call forward = listed_of(TN_F64, 2, 1 + turn % 2, sizes[turn]);
        call c = sparse_back_of(&forward, DENSE), found[sizeof rows / sizeof rows[0]];
        for (int n = 0; n < row_count; n++) {
            found[n] = twin_of(&c, results, RESULTS);
            compute_by(rows[n], &found[n], 2);
        }
        for (int n = 0; n < 30; n++) {
            operand *of = &forward.o[TN_ATTENTION_SPARSE_Q + n % 3];
            const int64_t e = (int64_t)dice((uint64_t)elements_of(&of->layout));
            const double before = (double)value_at(of, e, 0);
            put_number(of, e, before + step);
            const long double above = loss_of(&forward, &c.o[TN_ATTENTION_SPARSE_BACKWARD_DOUT]);
            put_number(of, e, before - step);
            const long double below = loss_of(&forward, &c.o[TN_ATTENTION_SPARSE_BACKWARD_DOUT]);
            const long double want = (above - below) / (2 * step);
            put_number(of, e, before);
            for (int i = 0; i < row_count; i++) {
                const long double is = value_at(&found[i].o[results[n % 3]], e, 0);
                if (!(fabsl(is - want) <= 1e-6L * (1 + fabsl(want))))
                    fail_msg("%s: operand %d, element %lld: %Lg is not %Lg", rows[i]->name,
                             (int)results[n % 3], (long long)e, is, want);
            }
        }
        for (int n = 0; n < row_count; n++)
            twin_drop(&found[n], results, RESULTS);
        call_drop(&c);
    }
}

/* NaN and infinity in keys that nobody sees, and in queries that see nothing, change no bit. */
static void what_is_not_seen_changes_nothing(void **state)
{
    static const int32_t of_keys[] = {TN_ATTENTION_SPARSE_K, TN_ATTENTION_SPARSE_V},
                         of_queries[] = {TN_ATTENTION_SPARSE_Q, TN_ATTENTION_SPARSE_BACKWARD_DOUT};
    (void)state;
    find_all();
    for (int turn = 0; turn < (test_full() && !test_reduced() ? 24 : 8); turn++) {
        const int64_t length = turn % 2 ? 140 : 60, block = turn % 4 ? 6 : 40;
        const int64_t sizes[] = {length, length + 9, block, 8, 12};
        call forward = listed_of(all[turn % 4], 2, 1 + turn % 2, sizes);
        call c = sparse_back_of(&forward, DENSE), bad = twin_of(&c, results, RESULTS);
        const tn_attention_op *at = &sparse_of(&c)->at;
        for (int32_t n = 0; n < 4; n++) {
            const int32_t o = n < 2 ? of_keys[n] : of_queries[n - 2];
            const tn_layout *of = &c.o[o].layout;
            bad.o[o] = make(of->dtype, 4, of->shape, DENSE);
            memcpy(bad.o[o].first, c.o[o].first, (size_t)(elements_of(of) * bytes_of(of->dtype)));
            for (int64_t row = 0; row < of->shape[1] * of->shape[2]; row++) {
                bool seen = false;
                for (int64_t m = 0; m < at->heads * (n < 2 ? at->queries : at->keys); m++) {
                    const int64_t h = n < 2 ? m / at->queries : row / at->queries;
                    const int64_t i = n < 2 ? m % at->queries : row % at->queries;
                    const int64_t j = n < 2 ? row % at->keys : m % at->keys;
                    const bool own = n >= 2 || h * at->groups / at->heads == row / at->keys;
                    seen = seen || (own && sees(&c, 0, h, i, j));
                }
                for (int64_t d = 0; !seen && d < of->shape[3]; d++)
                    put_number(&bad.o[o], row * of->shape[3] + d, d % 2 ? NAN : (double)INFINITY);
            }
        }
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &c, 2);
            compute_by(rows[n], &bad, 2);
            assert_same_bits(&c, &bad);
        }
        for (int32_t n = 0; n < 4; n++)
            drop(&bad.o[n < 2 ? of_keys[n] : of_queries[n - 2]]);
        twin_drop(&bad, results, RESULTS);
        call_drop(&c);
    }
}

/* Whether all elements of rows `first` to end - 1 are 0 (`zero`), or else finite. */
static void assert_rows(const operand *o, int64_t first, int64_t end, bool zero)
{
    const int64_t size = o->layout.shape[3];
    for (int64_t e = first * size; e < end * size; e++) {
        const long double x = value_at(o, e, 0);
        assert_false(is_nan(x) || is_inf(x));
        assert_true(!zero || x == 0);
    }
}

/* Block n of the queries sees blocks n and n + 1 of the keys, but the first one sees nothing. Block 3 of the keys is
 * NaN: this reaches only the queries that see it, and the keys that they see. */
static void nan_reaches_only_what_sees_it(void **state)
{
    enum { BLOCKS = 9 };
    (void)state;
    find_all();
    for (int turn = 0; turn < 8; turn++) {
        const int64_t block = turn < 4 ? 4 : 35, keys = block * BLOCKS, size = 12;
        const int64_t sizes[] = {keys, keys, block, block, size};
        call forward = listed_of(all[turn % 4], 1, 1, sizes);
        int64_t at = 0;
        for (int64_t n = 0; n < BLOCKS; n++) {
            put_i32(&forward.o[TN_ATTENTION_SPARSE_STARTS], n, at);
            for (int64_t m = n; n > 0 && m < n + 2 && m < BLOCKS; m++)
                put_i32(&forward.o[TN_ATTENTION_SPARSE_BLOCKS], at++, m);
        }
        put_i32(&forward.o[TN_ATTENTION_SPARSE_STARTS], BLOCKS, at);
        for (int64_t e = 3 * block * size; e < 4 * block * size; e++)
            put_number(&forward.o[TN_ATTENTION_SPARSE_K], e, NAN);
        call c = sparse_back_of(&forward, DENSE);
        for (int n = 0; n <= row_count; n++) {
            if (n < row_count)
                compute_by(rows[n], &c, 2);
            else
                call_compute(&c, 2);
            assert_rows(&c.o[TN_ATTENTION_SPARSE_BACKWARD_DQ], 0, block, true);
            assert_rows(&c.o[TN_ATTENTION_SPARSE_BACKWARD_DQ], block, 2 * block, false);
            assert_rows(&c.o[TN_ATTENTION_SPARSE_BACKWARD_DQ], 4 * block, keys, false);
            for (int i = 1; i < RESULTS; i++) {
                assert_rows(&c.o[results[i]], 0, block, true);
                assert_rows(&c.o[results[i]], block, 2 * block, false);
                assert_rows(&c.o[results[i]], 5 * block, keys, false);
            }
            assert_true(
                is_nan(value_at(&c.o[TN_ATTENTION_SPARSE_BACKWARD_DQ], 3 * block * size, 0)));
            assert_true(
                is_nan(value_at(&c.o[TN_ATTENTION_SPARSE_BACKWARD_DK], 3 * block * size, 0)));
        }
        call_drop(&c);
    }
}

static void assert_unwritten(const call *c)
{
    for (int i = 0; i < RESULTS; i++) {
        for (int64_t e = 0; e < elements_of(&c->o[results[i]].layout); e++)
            assert_true(is_nan(value_at(&c->o[results[i]], e, 0)));
    }
}

static void expect_wrong(call *c, const char *part)
{
    for (int n = 0; n <= row_count; n++) {
        tn_error err = {0};
        assert_int_equal(n < row_count ? run_row(rows[n], c, 1, &err) : call_run(c, 1, &err),
                         TN_INVALID_ARGUMENT);
        assert_true(n == row_count || strcmp(err.where, rows[n]->name) == 0);
        if (!strstr(err.message, part))
            fail_msg("\"%s\" is not in \"%s\"", part, err.message);
        assert_unwritten(c);
    }
}

static void wrong_tables_are_refused(void **state)
{
    static const int64_t sizes[] = {6, 9, 3, 4, 4}, used[] = {1, 3};
    (void)state;
    find_all();
    call forward = listed_of(TN_F32, 1, 1, sizes);
    operand *starts = &forward.o[TN_ATTENTION_SPARSE_STARTS];
    put_i32(&forward.o[TN_ATTENTION_SPARSE_BLOCKS], 0, 1);
    for (int64_t i = 0; i < 3; i++)
        put_i32(starts, i, i > 0);
    call c = sparse_back_of(&forward, DENSE);
    const int64_t entries = elements_of(&c.o[TN_ATTENTION_SPARSE_BLOCKS].layout);
    put_i32(starts, 1, entries + 1);
    expect_wrong(&c, "starts[0][0][0]: expected ascending numbers from 0 to the");
    put_i32(starts, 1, -1);
    expect_wrong(&c, "starts[0][0][0]: expected ascending");
    put_i32(starts, 1, 1);
    put_i32(&c.o[TN_ATTENTION_SPARSE_BLOCKS], 0, 3);
    expect_wrong(&c, "blocks[0]: expected at least 0 and below 3, got 3");
    put_i32(&c.o[TN_ATTENTION_SPARSE_BLOCKS], 0, 1);
    c.o[TN_ATTENTION_SPARSE_SIZES] = make(TN_I32, 2, used, DENSE);
    for (int64_t i = 0; i < 3; i++)
        put_i32(&c.o[TN_ATTENTION_SPARSE_SIZES], i, i < 2 ? 4 : 2);
    expect_wrong(&c, "block_sizes[0][2]: expected 0 to 1 keys, got 2");
    put_i32(&c.o[TN_ATTENTION_SPARSE_SIZES], 2, 1);
    check(&c, 1);
    call_drop(&c);
}

/* Twice the length needs about twice the workspace, whatever the blocks, and few times the operands' bytes. */
static void workspace_grows_with_the_length(void **state)
{
    static const int64_t blocks[] = {1, 7, 64, 384, 1 << 20};
    (void)state;
    find_all();
    for (int n = 0; n < row_count * 5; n++) {
        uint64_t bytes[2];
        for (int64_t twice = 0; twice < 2; twice++) {
            const int64_t length = (int64_t)65536 << twice, block = blocks[n / row_count];
            tn_op op = {.struct_size = sizeof op,
                        .kind = TN_OP_ATTENTION_SPARSE_BACKWARD,
                        .count = TN_ATTENTION_SPARSE_BACKWARD_OPERANDS};
            const int64_t shape[] = {1, 1, length, 128};
            for (int32_t o = 0; o < op.count; o++) {
                if (o < TN_ATTENTION_SPARSE_LSE || o >= TN_ATTENTION_SPARSE_BACKWARD_DOUT)
                    op.operand[o] = layout_of(TN_F32, 4, shape, DENSE);
            }
            *TN_PARAMS_MUTABLE(&op, attention_sparse) =
                (tn_attention_sparse_op){{.batch = 1,
                                          .heads = 1,
                                          .groups = 1,
                                          .queries = length,
                                          .keys = length,
                                          .size = 128,
                                          .value_size = 128,
                                          .left = -1,
                                          .right = -1,
                                          .scale = 1},
                                         block,
                                         block,
                                         blocks_of(length, block),
                                         blocks_of(length, block)};
            const tn_query query = {
                .struct_size = sizeof query, .op = &op, .threads = 2, .setting = tell_setting};
            bytes[twice] = rows[n % row_count]->workspace(rows[n % row_count], &query);
            assert_true(bytes[twice] < (uint64_t)(20 * length * 128 * 4));
        }
        assert_true((double)bytes[1] < 2.1 * (double)bytes[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_problem_is_as_defined),
        cmocka_unit_test(sizes_at_edges),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(what_is_not_seen_changes_nothing),
        cmocka_unit_test(nan_reaches_only_what_sees_it),
        cmocka_unit_test(wrong_tables_are_refused),
        cmocka_unit_test(workspace_grows_with_the_length),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_sparse_backward", tests);
}
