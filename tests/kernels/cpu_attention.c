/* The processor's own attention of f32 and f64, every row that runs here, against the reference. */
#include "cpu_attention_make.h"

static const int32_t results[] = {TN_ATTENTION_OUT, TN_ATTENTION_LSE};
enum { RESULTS = 2 };

/* Every row gives what the reference does, and writes nothing else. */
static void check(call *c, int32_t threads)
{
    call want = twin_of(c, results, RESULTS);
    call_compute(&want, 1);
    for (int n = 0; n < row_count; n++) {
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
    tn_attention_op *at = &c.op.as.attention;
    const bool paged = dice(4) == 0, packed = dice(4) == 0;
    if (dice(3) == 0)
        drop(&c.o[TN_ATTENTION_LSE]);
    roll_numbers(at);
    if (paged)
        roll_pages(&c);
    if (packed)
        roll_packed(&c, paged);
    if (!paged && !packed)
        roll_mask(&c);
    if (paged || dice(3) == 0)
        roll_lengths(&c);
    roll_wide_window(at);
    if (dice(3) == 0)
        c.o[TN_ATTENTION_SINKS] =
            make_random(dice(2) ? TN_F32 : dtype, 1, &at->heads, (int)dice(LAYOUTS));
    for (int32_t o = TN_ATTENTION_Q; o <= TN_ATTENTION_V; o++)
        call_lay(&c, o, dice(2) ? DENSE : (int)dice(LAYOUTS));
    for (int32_t o = TN_ATTENTION_OUT; o <= TN_ATTENTION_LSE; o++) {
        if (c.o[o].memory)
            call_lay(&c, o, DENSE);
    }
    return c;
}

static void any_op_is_that_of_the_reference(void **state)
{
    const int turns = test_reduced() ? 100 : 1200;
    (void)state;
    find_rows(TN_OP_ATTENTION);
    for (int turn = 0; turn < turns; turn++) {
        call c = roll_call();
        check(&c, 1 + (int32_t)dice(4));
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_op_is_that_of_the_reference),
    };
    return run_suite("kernels.cpu_attention", tests);
}
