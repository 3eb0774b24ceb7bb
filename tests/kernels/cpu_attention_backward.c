/* The processor's own attention-backward of f32 and f64, every row that runs here, against the reference. */
#include "cpu_attention_make.h"

static const int32_t results[] = {TN_ATTENTION_DQ, TN_ATTENTION_DK, TN_ATTENTION_DV};
enum { RESULTS = 3 };

/* The way back of a call that was computed: its operands are taken over. */
static call back_of(call *forward)
{
    static const int32_t of[] = {TN_ATTENTION_OUT, TN_ATTENTION_Q, TN_ATTENTION_K, TN_ATTENTION_V};
    const tn_dtype dtype = forward->o[TN_ATTENTION_Q].layout.dtype;
    call c = *forward;
    c.op.kind = TN_OP_ATTENTION_BACKWARD;
    c.op.count = TN_ATTENTION_BACKWARD_OPERANDS;
    for (int32_t o = TN_ATTENTION_DOUT; o <= TN_ATTENTION_DV; o++) {
        const int64_t *shape = forward->o[of[o - TN_ATTENTION_DOUT]].layout.shape;
        c.o[o] = o == TN_ATTENTION_DOUT ? make_random(dtype, 4, shape, (int)dice(LAYOUTS))
                                        : make_poisoned(dtype, 4, shape, DENSE);
    }
    return c;
}

static call roll_forward(int64_t most_queries, int64_t most_keys)
{
    const int64_t groups = 1 + (int64_t)dice(2), size = roll_size(70);
    call c = call_of(reals[dice(2)], 1 + (int64_t)dice(2), groups * (1 + (int64_t)dice(2)), groups,
                     roll_size(most_queries), roll_size(most_keys), size,
                     dice(2) ? size : roll_size(70));
    roll_numbers(&c.op.as.attention);
    roll_mask(&c);
    roll_wide_window(&c.op.as.attention);
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_LSE; o++)
        call_lay(&c, o, (int)dice(o >= TN_ATTENTION_OUT ? REPEATED : LAYOUTS));
    return c;
}

static void check(call *c, int32_t threads)
{
    call want = twin_of(c, results, RESULTS);
    call_compute(&want, 1);
    for (int n = 0; n < row_count; n++) {
        call found = twin_of(c, results, RESULTS);
        for (int i = 0; i < RESULTS; i++) {
            const tn_layout like = found.o[results[i]].layout;
            drop(&found.o[results[i]]);
            found.o[results[i]] =
                make_poisoned(like.dtype, like.rank, like.shape, (int)dice(REPEATED));
        }
        compute_by(rows[n], &found, threads);
        for (int i = 0; i < RESULTS; i++) {
            assert_close(&found, &want, results[i], rows[n]->name);
            assert_outside_untouched(&found.o[results[i]]);
        }
        twin_drop(&found, results, RESULTS);
    }
    twin_drop(&want, results, RESULTS);
}

static void any_op_is_that_of_the_reference(void **state)
{
    const int turns = test_reduced() ? 30 : 250;
    (void)state;
    find_rows(TN_OP_ATTENTION_BACKWARD);
    for (int turn = 0; turn < turns; turn++) {
        call forward = turn % 8 ? roll_forward(40, 60) : roll_forward(300, 600);
        call_compute(&forward, 1);
        call c = back_of(&forward);
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_op_is_that_of_the_reference),
    };
    return run_suite("kernels.cpu_attention_backward", tests);
}
