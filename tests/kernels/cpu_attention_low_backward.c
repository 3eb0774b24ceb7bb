/* The processor's own attention-backward of bf16 and f16, by the criterion of FlashAttention's tests: the greatest
 * error of each gradient, against f64, is at most twice that of the formula evaluated plainly in the operands'
 * dtype. That rows give what the reference does, and the same bits on any number of threads, is looked at in
 * cpu_attention_backward. */
#include "attention_plain.h"
#include "cpu_attention_make.h"

static const int32_t results[] = {TN_ATTENTION_BACKWARD_DQ, TN_ATTENTION_BACKWARD_DK,
                                  TN_ATTENTION_BACKWARD_DV};
enum { RESULTS = 3 };

static const tn_dtype halves[] = {TN_BF16, TN_F16, 0};

static void find_low(void)
{
    assert_true(find_rows_of(TN_OP_ATTENTION_BACKWARD, halves, 0, 0) >= 2);
}

/* The same numbers as f64. */
static operand widened(const operand *from)
{
    operand wide = make(TN_F64, from->layout.rank, from->layout.shape, DENSE);
    for (int64_t e = 0; e < elements_of(&from->layout); e++)
        put_number(&wide, e, (double)value_at(from, e, 0));
    return wide;
}

/* The same bytes, of one that is dense. */
static operand copied(const operand *from)
{
    operand copy = make(from->layout.dtype, from->layout.rank, from->layout.shape, DENSE);
    assert_int_equal(copy.size, from->size);
    memcpy(copy.memory, from->memory, from->size);
    return copy;
}

/* What the call should give: forward and back in f64, from the same numbers. */
static call wanted_of(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    call forward = call_of(TN_F64, at->batch, at->heads, at->groups, at->queries, at->keys,
                           at->size, at->value_size);
    *TN_PARAMS_MUTABLE(&forward.op, attention) = *at;
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_V; o++) {
        drop(&forward.o[o]);
        forward.o[o] = widened(&c->o[o]);
    }
    if (has(c, TN_ATTENTION_MASK))
        forward.o[TN_ATTENTION_MASK] = copied(&c->o[TN_ATTENTION_MASK]);
    call_compute(&forward, 1);
    call want = back_of(&forward, DENSE);
    drop(&want.o[TN_ATTENTION_BACKWARD_DOUT]);
    want.o[TN_ATTENTION_BACKWARD_DOUT] = widened(&c->o[TN_ATTENTION_BACKWARD_DOUT]);
    call_compute(&want, 1);
    return want;
}

/* Sums of a gradient, by element. */
typedef struct sums {
    double *of[RESULTS];
} sums;

static double row_product(const call *c, int32_t a, const head *in, int64_t i, int32_t b, int64_t j)
{
    const bool key = b == TN_ATTENTION_K || b == TN_ATTENTION_V;
    const int64_t size = b == TN_ATTENTION_K ? TN_PARAMS(&c->op, attention)->size
                                             : TN_PARAMS(&c->op, attention)->value_size;
    double sum = 0;
    for (int64_t d = 0; d < size; d++)
        sum += (double)query_value(c, a, in, i, d) *
               (double)(key ? key_value(c, b, in, j, d) : query_value(c, b, in, i, d));
    return rounded(c->o[TN_ATTENTION_Q].layout.dtype, sum);
}

/* One pair's part, each step of which is rounded. */
static void add_pair(const call *c, const head *in, int64_t i, int64_t j, double weight,
                     double delta, const sums *to)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    const double dp = row_product(c, TN_ATTENTION_BACKWARD_DOUT, in, i, TN_ATTENTION_V, j);
    const double ds = rounded(dtype, weight * rounded(dtype, dp - delta));
    for (int64_t d = 0; d < at->size; d++) {
        to->of[0][query_index(c, TN_ATTENTION_BACKWARD_DQ, in, i, d)] +=
            ds * at->scale * (double)key_value(c, TN_ATTENTION_K, in, j, d);
        to->of[1][key_index(c, TN_ATTENTION_BACKWARD_DK, in, j, d)] +=
            ds * at->scale * (double)query_value(c, TN_ATTENTION_Q, in, i, d);
    }
    for (int64_t d = 0; d < at->value_size; d++)
        to->of[2][key_index(c, TN_ATTENTION_BACKWARD_DV, in, j, d)] +=
            weight * (double)query_value(c, TN_ATTENTION_BACKWARD_DOUT, in, i, d);
}

static void evaluate_plainly(const call *c, const sums *to)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    desk d = desk_of(c);
    for (int64_t n = 0; n < at->batch * at->heads; n++) {
        const head in = head_of(c, n / at->heads, n % at->heads);
        read_head(c, &in, &d);
        for (int64_t i = 0; i < at->queries; i++) {
            for (int64_t e = 0; e < at->size; e++)
                d.q[e] = (double)query_value(c, TN_ATTENTION_Q, &in, i, e);
            plain_weights(c, &in, &d, i, NULL);
            const double delta =
                row_product(c, TN_ATTENTION_BACKWARD_DOUT, &in, i, TN_ATTENTION_OUT, i);
            for (int64_t j = 0; j < at->keys; j++) {
                if (d.score[j] != 0)
                    add_pair(c, &in, i, j, d.score[j], delta, to);
            }
        }
    }
    desk_drop(&d);
}

/* The greatest error of the plain evaluation, of each gradient; *out_most is the greatest that is wanted. */
static void find_plain(const call *c, const call *want, double *out_error, double *out_most)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    sums all;
    for (int r = 0; r < RESULTS; r++) {
        const int64_t count = elements_of(&c->o[results[r]].layout);
        all.of[r] = doubles(count);
        memset(all.of[r], 0, (size_t)count * sizeof(double));
    }
    evaluate_plainly(c, &all);
    for (int r = 0; r < RESULTS; r++) {
        out_error[r] = out_most[r] = 0;
        for (int64_t e = 0; e < elements_of(&c->o[results[r]].layout); e++) {
            const double y = (double)value_at(&want->o[results[r]], e, 0);
            out_error[r] = fmax(out_error[r], fabs(rounded(dtype, all.of[r][e]) - y));
            out_most[r] = fmax(out_most[r], fabs(y));
        }
        free(all.of[r]);
    }
}

static void check(call *c, const call *want)
{
    const tn_dtype dtype = c->o[TN_ATTENTION_Q].layout.dtype;
    const double least =
        0x1p-24 * (double)TN_PARAMS(&c->op, attention)->value_size; /* dout times v, of f32 */
    double plain[RESULTS], most[RESULTS];
    find_plain(c, want, plain, most);
    for (int n = 0; n < row_count; n++) {
        if (!takes(rows[n], c))
            continue;
        call found = twin_of(c, results, RESULTS);
        compute_by(rows[n], &found, 2);
        for (int r = 0; r < RESULTS; r++) {
            const double slack =
                2 * plain[r] + (double)ulp(dtype, (long double)most[r]) / 2 + least;
            for (int64_t e = 0; e < elements_of(&c->o[results[r]].layout); e++) {
                const double x = (double)value_at(&found.o[results[r]], e, 0);
                const double y = (double)value_at(&want->o[results[r]], e, 0);
                if (!(fabs(x - y) <= slack))
                    fail_msg("%s: operand %d, element %lld: %g is not %g, the formula is off by %g",
                             rows[n]->name, (int)results[r], (long long)e, x, y, plain[r]);
            }
        }
        twin_drop(&found, results, RESULTS);
    }
}

static void errors_are_those_of_the_formula(void **state)
{
    static const int64_t sizes[][4] = {
        {40, 60, 64, 64}, {33, 129, 40, 24}, {65, 31, 128, 96}, {1, 70, 512, 512}};
    (void)state;
    const uint64_t before = dice_hold();
    find_low();
    for (int turn = 0; turn < 8 * MASKS; turn += test_full() && !test_reduced() ? 1 : 5) {
        const int64_t *s = sizes[turn / 2 % 4];
        call forward = call_of(halves[turn % 2], 1, 2, 1 + turn / 4 % 2, s[0], s[1], s[2], s[3]);
        TN_PARAMS_MUTABLE(&forward.op, attention)->scale = 1 / sqrt((double)s[2]);
        put_mask(&forward, turn / 8);
        call_compute(&forward, 1);
        call c = back_of(&forward, DENSE), want = wanted_of(&c);
        check(&c, &want);
        call_drop(&want);
        call_drop(&c);
    }
    dice_state = before;
}

/* Whether the row admits a call; if not, which dtype it names. */
static void admitted_by(const tn_kernel_row *row, call *c, const char *what, tn_dtype needed,
                        tn_dtype found)
{
    const tn_query query = {.struct_size = sizeof query, .op = &c->op, .threads = 1};
    tn_refusal why = {.struct_size = sizeof why};
    for (int32_t i = 0; i < c->op.count; i++)
        c->op.operand[i] = c->o[i].layout;
    assert_int_equal(row->admit(row, &query, &why), what ? TN_UNSUPPORTED : TN_OK);
    if (!what)
        return;
    assert_string_equal(why.what, what);
    assert_int_equal(why.code, TN_REFUSE_DTYPE);
    assert_int_equal(why.needed, needed);
    assert_int_equal(why.found, found);
}

static void what_is_refused(void **state)
{
    static const struct {
        int32_t operand;
        const char *what;
    } of[] = {{TN_ATTENTION_OUT, "out"},
              {TN_ATTENTION_BACKWARD_DOUT, "dout"},
              {TN_ATTENTION_BACKWARD_DQ, "dq"},
              {TN_ATTENTION_BACKWARD_DK, "dk"},
              {TN_ATTENTION_BACKWARD_DV, "dv"}};
    (void)state;
    find_low();
    for (int n = 0; n < row_count; n++) {
        const tn_dtype dtype = rows[n]->dtypes[0];
        call forward = call_of(dtype, 1, 1, 1, 2, 2, 4, 4), c = back_of(&forward, DENSE);
        assert_int_equal(rows[n]->numerics & TN_NUM_RUN_TO_RUN, TN_NUM_RUN_TO_RUN);
        admitted_by(rows[n], &c, NULL, 0, 0);
        for (int i = 0; i < 5; i++) {
            c.o[of[i].operand].layout.dtype = TN_F32;
            admitted_by(rows[n], &c, of[i].what, dtype, TN_F32);
            c.o[of[i].operand].layout.dtype = dtype;
        }
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_those_of_the_formula),
        cmocka_unit_test(what_is_refused),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_low_backward", tests);
}
