/* The processor's own attention-merge, every row that runs here, against the reference. */
#include "cpu_attention_make.h"

#include "tenon/module/op/attention_merge.h"

static const tn_dtype all[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};
static const int32_t results[] = {TN_MERGE_OUT, TN_MERGE_LSE};
enum { RESULTS = 2 };

/* Of what saw no key, whose lse is -infinity, all numbers are NaNs. */
static void blind_some(operand *out, operand *lse, int64_t count, int64_t size)
{
    for (int64_t n = 0; n < count; n++) {
        if (dice(3) == 0)
            put_number(lse, n, (double)dice(2000) - 1000);
        if (dice(20) == 0)
            put_number(lse, n, dice(2) ? NAN : (double)INFINITY);
        if (dice(5))
            continue;
        put_number(lse, n, -(double)INFINITY);
        for (int64_t d = 0; d < size; d++)
            put_number(out, n * size + d, NAN);
    }
}

static call roll_merge(int64_t batch, int64_t heads, int64_t length, int64_t size)
{
    const tn_dtype dtype = all[dice(4)], sums = dtype == TN_F64 ? TN_F64 : TN_F32;
    const tn_dtype to = dtype != TN_F64 && dice(2) ? TN_F32 : dtype;
    const int64_t shape[] = {batch, heads, length, size}, count = batch * heads * length;
    call c = {.op = {.struct_size = sizeof c.op,
                     .kind = TN_OP_ATTENTION_MERGE,
                     .count = TN_MERGE_OPERANDS}};
    *TN_PARAMS_MUTABLE(&c.op, elementwise) =
        (tn_elementwise_op){.elements = count * size, .size = size, .rows = count};
    for (int32_t o = TN_MERGE_IN; o <= TN_MERGE_OTHER; o += TN_MERGE_OTHER) {
        c.o[o] = make_random(dtype, 4, shape, (int)dice(REPEATED));
        c.o[o + 1] = make_random(sums, 3, shape, (int)dice(REPEATED));
        blind_some(&c.o[o], &c.o[o + 1], count, size);
    }
    c.o[TN_MERGE_OUT] = make_poisoned(to, 4, shape, DENSE);
    if (dice(3))
        c.o[TN_MERGE_LSE] = make_poisoned(sums, 3, shape, DENSE);
    return c;
}

/* Weights are computed in f64, and used in f32 but for f64. */
static void assert_merged(const call *found, const call *want, int32_t which, const char *name)
{
    const operand *o = &found->o[which];
    const bool wide = found->o[TN_MERGE_IN].layout.dtype == TN_F64;
    for (int64_t e = 0; e < elements_of(&o->layout); e++) {
        const long double x = value_at(o, e, 0), y = value_at(&want->o[which], e, 0);
        const long double near = (wide ? 0x1p-50L : 0x1p-21L) * (2 + fabsl(y));
        if (is_nan(y)   ? !is_nan(x)
            : is_inf(y) ? x != y
                        : !(fabsl(x - y) <= near + ulp(o->layout.dtype, y)))
            fail_msg("%s: operand %d, element %lld: %Lg is not %Lg", name, which, (long long)e, x,
                     y);
    }
    assert_outside_untouched(o);
}

static void check(call *c, int32_t threads)
{
    call want = twin_of(c, results, RESULTS);
    call_compute(&want, 1);
    for (int n = 0; n < row_count; n++) {
        call found = *c;
        for (int i = 0; i < RESULTS; i++) {
            const tn_layout *like = &c->o[results[i]].layout;
            if (like->dtype)
                found.o[results[i]] =
                    make_poisoned(like->dtype, like->rank, like->shape, (int)dice(REPEATED));
        }
        compute_by(rows[n], &found, threads);
        for (int i = 0; i < RESULTS; i++) {
            if (c->o[results[i]].layout.dtype)
                assert_merged(&found, &want, results[i], rows[n]->name);
        }
        twin_drop(&found, results, RESULTS);
    }
    twin_drop(&want, results, RESULTS);
}

static void any_merge_is_that_of_the_reference(void **state)
{
    const int turns = test_reduced() ? 60 : 600;
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_MERGE, all, 0, 0);
    for (int turn = 0; turn < turns; turn++) {
        call c = roll_merge(1 + (int64_t)dice(2), 1 + (int64_t)dice(3), 1 + (int64_t)dice(5),
                            turn % 20 ? roll_size(140) : 1000 + roll_size(140));
        check(&c, 1);
        call_drop(&c);
    }
}

/* The bits of both, which lie together. */
static void assert_same(const operand *a, const operand *b)
{
    const int64_t bytes = (a->layout.dtype >> 8 & 255) / 8;
    if (a->layout.dtype)
        assert_memory_equal(a->first, b->first, (size_t)(elements_of(&a->layout) * bytes));
}

/* Enough rows for several tasks. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_MERGE, all, 0, 0);
    for (int turn = 0; turn < 4; turn++) {
        call one = roll_merge(2, 8, 150, 65);
        call many = twin_of(&one, results, RESULTS);
        for (int n = 0; n < row_count; n++) {
            compute_by(rows[n], &one, 1);
            compute_by(rows[n], &many, 4);
            for (int i = 0; i < RESULTS; i++)
                assert_same(&one.o[results[i]], &many.o[results[i]]);
        }
        check(&one, 4);
        twin_drop(&many, results, RESULTS);
        call_drop(&one);
    }
}

static void other_types_are_refused(void **state)
{
    (void)state;
    (void)find_rows_of(TN_OP_ATTENTION_MERGE, all, 0, 0);
    for (int n = 0; n < row_count; n++) {
        call c = roll_merge(1, 1, 1, 4);
        c.op.operand[TN_MERGE_IN] = (tn_layout){.dtype = TN_F32};
        c.op.operand[TN_MERGE_OTHER] = (tn_layout){.dtype = TN_F64};
        const tn_query query = {.struct_size = sizeof query, .op = &c.op};
        tn_refusal why = {.struct_size = sizeof why};
        assert_int_equal(rows[n]->admit(rows[n], &query, &why), TN_UNSUPPORTED);
        assert_string_equal(why.what, "other");
        assert_int_equal(why.needed, TN_F32);
        assert_int_equal(why.found, TN_F64);
        call_drop(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_merge_is_that_of_the_reference),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(other_types_are_refused),
    };
    dice_begin();
    return run_suite("kernels.cpu_attention_merge", tests);
}
