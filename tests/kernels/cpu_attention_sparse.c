/* The reference kernel of attention-sparse against its definition, and the processor's own, every row that runs here,
 * against both: fresh random numbers, awkward blocks, masks, lists and sizes. */
#include "attention_sparse_make.h"

static const int32_t results[] = {TN_ATTENTION_SPARSE_OUT, TN_ATTENTION_SPARSE_LSE};
enum { RESULTS = 2 };

/* Slots for all tokens and `empty` more, a random permutation of the tokens. */
static void put_order(call *c, int64_t empty)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const int64_t slots = op->at.keys + empty, shape[] = {op->at.batch, slots};
    const int64_t counts[] = {op->at.batch, op->key_blocks};
    operand *order = &c->o[TN_ATTENTION_SPARSE_ORDER], *sizes = &c->o[TN_ATTENTION_SPARSE_SIZES];
    *order = make(TN_I32, 2, shape, dice(2) ? DENSE : SPREAD);
    if (empty > 0)
        *sizes = make(TN_I32, 2, counts, DENSE);
    for (int64_t b = 0; b < op->at.batch; b++) {
        int64_t left = op->at.keys, token = 0;
        const int64_t step = op->at.keys % 7 ? 7 : 1, from = (int64_t)dice((uint64_t)left);
        for (int64_t n = 0; n < op->key_blocks; n++) {
            const int64_t first = n * op->block_keys, after = slots - first - op->block_keys;
            const int64_t most = after < 0 ? slots - first : op->block_keys;
            const int64_t least = left > after && after > 0 ? left - after : after > 0 ? 0 : left;
            const int64_t up = most < left ? most : left;
            const int64_t size = least + (int64_t)dice((uint64_t)(up - least) + 1);
            if (empty > 0)
                put_i32(sizes, b * op->key_blocks + n, size);
            for (int64_t i = 0; i < most; i++)
                put_i32(order, b * slots + first + i,
                        i < (empty > 0 ? size : most) ? (from + step * token++) % op->at.keys : 0);
            left -= size;
        }
    }
}

/* Blocks of slots, in an order of the tokens. */
static call roll_ordered(tn_dtype dtype, int64_t most)
{
    const int64_t length = roll_size(most), size = roll_size(130);
    const int64_t groups = 1 + (int64_t)dice(2), heads = groups * (1 + (int64_t)dice(3));
    call c = call_of(dtype, 1 + (int64_t)dice(2), heads, groups, length, length, size, size);
    const tn_attention_op at = *TN_PARAMS(&c.op, attention);
    const int64_t block = 1 + (int64_t)dice((uint64_t)length + 20);
    const int64_t empty = dice(3) ? (int64_t)dice(3 * (uint64_t)block) : 0;
    const int64_t blocks = blocks_of(length + empty, block);
    c.op.kind = TN_OP_ATTENTION_SPARSE;
    c.op.count = TN_ATTENTION_SPARSE_OPERANDS;
    *sparse_of(&c) = (tn_attention_sparse_op){at, block, block, blocks, blocks};
    sparse_of(&c)->at.left = sparse_of(&c)->at.right = -1;
    sparse_of(&c)->at.shift = 0;
    put_order(&c, empty);
    put_lists(&c);
    return c;
}

/* Blocks of tokens, or of slots: fewer, because the definition seeks the slot of every token of a pair. */
static call roll_any(tn_dtype dtype, int64_t most)
{
    enum { ORDERED_MOST = 60 };
    return dice(4) == 0 ? roll_ordered(dtype, most < ORDERED_MOST ? most : ORDERED_MOST)
                        : roll_sparse(dtype, most);
}

/* The same result by the definition: a loop over all keys for each query. Q, K and V are shared. */
static void define(const call *c, call *out)
{
    const tn_attention_sparse_op *op = TN_PARAMS(&c->op, attention_sparse);
    const tn_attention_op *at = &op->at;
    long double *weights = calloc((size_t)at->keys + 1, sizeof *weights);
    const operand *q = &c->o[TN_ATTENTION_SPARSE_Q], *k = &c->o[TN_ATTENTION_SPARSE_K];
    const operand *v = &c->o[TN_ATTENTION_SPARSE_V];
    assert_non_null(weights);
    for (int64_t r = 0; r < at->batch * at->heads * at->queries; r++) {
        const int64_t i = r % at->queries, h = r / at->queries % at->heads;
        const int64_t b = r / at->queries / at->heads;
        const int64_t group = b * at->groups + h * at->groups / at->heads;
        long double greatest = -(long double)INFINITY, sum = 0;
        for (int64_t j = 0; j < at->keys; j++) {
            long double dot = 0;
            for (int64_t d = 0; d < at->size; d++)
                dot += value_at(q, r * at->size + d, 0) *
                       value_at(k, (group * at->keys + j) * at->size + d, 0);
            weights[j] = sees(c, b, h, i, j) ? at->scale * dot : -(long double)INFINITY;
            greatest = weights[j] > greatest ? weights[j] : greatest;
        }
        for (int64_t j = 0; j < at->keys; j++) {
            weights[j] = weights[j] > -(long double)INFINITY ? expl(weights[j] - greatest) : 0;
            sum += weights[j];
        }
        for (int64_t d = 0; d < at->value_size; d++) {
            long double total = 0;
            for (int64_t j = 0; j < at->keys; j++)
                total +=
                    weights[j] > 0
                        ? weights[j] * value_at(v, (group * at->keys + j) * at->value_size + d, 0)
                        : 0;
            put_number(&out->o[TN_ATTENTION_SPARSE_OUT], r * at->value_size + d,
                       sum > 0 ? (double)(total / sum) : 0);
        }
        put_number(&out->o[TN_ATTENTION_SPARSE_LSE], r,
                   sum > 0 ? (double)(greatest + logl(sum)) : -(double)INFINITY);
    }
    free(weights);
}

/* The definition's results are f64, whatever the dtype. */
static call defined_of(const call *c)
{
    call want = *c;
    for (int n = 0; n < RESULTS; n++) {
        const tn_layout *of = &c->o[results[n]].layout;
        want.o[results[n]] = make(TN_F64, of->rank, of->shape, DENSE);
    }
    define(c, &want);
    return want;
}

static void check(call *c, int32_t threads)
{
    call want = defined_of(c), by_reference = twin_of(c, results, RESULTS);
    call_compute(&by_reference, threads);
    for (int i = 0; i < RESULTS; i++)
        assert_close(&by_reference, &want, results[i], "reference");
    for (int n = 0; n < row_count; n++) {
        call found = twin_of(c, results, RESULTS);
        compute_by(rows[n], &found, threads);
        for (int i = 0; i < RESULTS; i++) {
            assert_close(&found, &want, results[i], rows[n]->name);
            assert_outside_untouched(&found.o[results[i]]);
        }
        twin_drop(&found, results, RESULTS);
    }
    twin_drop(&by_reference, results, RESULTS);
    twin_drop(&want, results, RESULTS);
}

static void any_problem_is_as_defined(void **state)
{
    const int turns = test_reduced() ? 12 : test_full() ? 160 : 50;
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_SPARSE, all, 0, 0);
    for (int turn = 0; turn < turns; turn++) {
        call c = roll_any(all[dice(4)], turn % 20 ? 100 : 500);
        check(&c, 1 + (int32_t)dice(3));
        call_drop(&c);
    }
}

static void assert_same_bits(const call *one, const call *other)
{
    for (int i = 0; i < RESULTS; i++) {
        const operand *a = &one->o[results[i]], *b = &other->o[results[i]];
        const int64_t bytes = (a->layout.dtype >> 8 & 255) / 8;
        assert_memory_equal(a->first, b->first, (size_t)(elements_of(&a->layout) * bytes));
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_SPARSE, all, 0, 0);
    for (int turn = 0; turn < (test_reduced() ? 4 : 8); turn++) {
        call one = roll_any(all[turn % 4], 700), many = twin_of(&one, results, RESULTS);
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &one, 1);
            compute_by(rows[n], &many, 4);
            assert_same_bits(&one, &many);
        }
        twin_drop(&many, results, RESULTS);
        call_drop(&one);
    }
}

/* NaN and infinity in keys that no list names, or that do not exist, change no bit. */
static void excluded_keys_change_nothing(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_SPARSE, all, 0, 0);
    for (int turn = 0; turn < (test_reduced() ? 8 : 24); turn++) {
        call c = roll_any(all[dice(4)], 140), bad = twin_of(&c, results, RESULTS);
        const tn_attention_op *at = &sparse_of(&c)->at;
        for (int32_t o = TN_ATTENTION_SPARSE_K; o <= TN_ATTENTION_SPARSE_V; o++) {
            const tn_layout *of = &c.o[o].layout;
            bad.o[o] = make(of->dtype, 4, of->shape, DENSE);
            for (int64_t e = 0; e < elements_of(of); e++)
                memcpy(element_at(&bad.o[o], e), element_at(&c.o[o], e),
                       (size_t)bytes_of(of->dtype));
            for (int64_t key = 0; key < at->batch * at->groups * at->keys; key++) {
                const int64_t j = key % at->keys, b = key / at->keys / at->groups;
                bool seen = false;
                for (int64_t n = 0; n < at->heads * at->queries; n++) {
                    const int64_t h = n / at->queries;
                    if (h * at->groups / at->heads == key / at->keys % at->groups)
                        seen = seen || sees(&c, b, h, n % at->queries, j);
                }
                for (int64_t d = 0; !seen && d < of->shape[3]; d++)
                    put_number(&bad.o[o], key * of->shape[3] + d, d % 2 ? NAN : (double)INFINITY);
            }
        }
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &c, 2);
            compute_by(rows[n], &bad, 2);
            assert_same_bits(&c, &bad);
        }
        drop(&bad.o[TN_ATTENTION_SPARSE_K]);
        drop(&bad.o[TN_ATTENTION_SPARSE_V]);
        twin_drop(&bad, results, RESULTS);
        call_drop(&c);
    }
}

static void expect_wrong(call *c, const char *part)
{
    for (int n = 0; n < row_count; n++) {
        tn_error err = {0};
        assert_int_equal(run_row(rows[n], c, 1, &err), TN_INVALID_ARGUMENT);
        assert_string_equal(err.where, rows[n]->name);
        if (!strstr(err.message, part))
            fail_msg("\"%s\" is not in \"%s\"", part, err.message);
    }
    tn_error err = {0};
    assert_int_equal(call_run(c, 1, &err), TN_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, part));
}

/* Wrong tables are found before anything is written or read by them. */
static void wrong_tables_are_refused(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_SPARSE, all, 0, 0);
    call c = call_of(TN_F32, 1, 1, 1, 6, 9, 4, 4);
    const tn_attention_op at = *TN_PARAMS(&c.op, attention);
    const int64_t starts[] = {1, 1, 3}, entries[] = {4}, sizes[] = {1, 3};
    c.op.kind = TN_OP_ATTENTION_SPARSE;
    c.op.count = TN_ATTENTION_SPARSE_OPERANDS;
    *sparse_of(&c) = (tn_attention_sparse_op){at, 3, 4, 2, 3};
    operand *of_rows = &c.o[TN_ATTENTION_SPARSE_STARTS];
    operand *blocks = &c.o[TN_ATTENTION_SPARSE_BLOCKS];
    *of_rows = make(TN_I32, 3, starts, DENSE);
    *blocks = make(TN_I32, 1, entries, DENSE);
    static const int32_t right[] = {0, 2, 4, 0, 2, 1, 2};
    static const char *const parts[] = {
        "starts[0][0][0]: expected ascending numbers from 0 to the 4 entries of blocks, got 0 and then 5",
        "starts[0][0][0]: expected ascending",
        "starts[0][0][1]: expected ascending",
        "blocks[0]: expected at least 0 and below 3, got 3",
        "blocks[2]: expected at least 0 and below 3, got 7",
        "blocks[3]: expected at least 2 and below 3, got 0; list the blocks",
        "blocks[1]: expected at least 1 and below 3, got -1"};
    static const int32_t value[] = {5, -1, 5, 3, 7, 0, -1}, place[] = {1, 0, 2, 3, 5, 6, 4};
    for (int n = 0; n < 7; n++) {
        for (int i = 0; i < 7; i++)
            put_i32(i < 3 ? of_rows : blocks, i < 3 ? i : i - 3, right[i]);
        put_i32(place[n] < 3 ? of_rows : blocks, place[n] < 3 ? place[n] : place[n] - 3, value[n]);
        expect_wrong(&c, parts[n]);
    }
    for (int i = 0; i < 7; i++)
        put_i32(i < 3 ? of_rows : blocks, i < 3 ? i : i - 3, right[i]);
    c.o[TN_ATTENTION_SPARSE_SIZES] = make(TN_I32, 2, sizes, DENSE);
    for (int i = 0; i < 3; i++)
        put_i32(&c.o[TN_ATTENTION_SPARSE_SIZES], i, 1);
    put_i32(&c.o[TN_ATTENTION_SPARSE_SIZES], 2, 2);
    expect_wrong(&c, "block_sizes[0][2]: expected 0 to 1 keys, got 2");
    put_i32(&c.o[TN_ATTENTION_SPARSE_SIZES], 2, -1);
    expect_wrong(&c, "block_sizes[0][2]: expected 0 to 1 keys, got -1");
    put_i32(&c.o[TN_ATTENTION_SPARSE_SIZES], 2, 1);
    check(&c, 1);
    call_drop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_problem_is_as_defined),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(excluded_keys_change_nothing),
        cmocka_unit_test(wrong_tables_are_refused),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_sparse", tests);
}
