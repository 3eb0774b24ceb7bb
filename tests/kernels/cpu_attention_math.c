/* The processor's attention that forms scores: what its rows make of a limit of their memory, what they say of it,
 * and those that keep scores in 16 bits. That they compute what the reference does is looked at in cpu_attention and
 * cpu_attention_low. */
#include "attention_plain.h"
#include "cpu_attention_make.h"

#include "tenon/tenon.h"

static const tn_dtype floats[] = {TN_F32, TN_F64, TN_BF16, TN_F16, 0};

/* Those whose name begins so. */
static void find_math(const char *word)
{
    int count = 0;
    (void)find_rows_of(TN_OP_ATTENTION, floats, 0, 0);
    for (int n = 0; n < row_count; n++) {
        if (strncmp(rows[n]->name, word, strlen(word)) == 0)
            rows[count++] = rows[n];
    }
    row_count = count;
    assert_true(row_count > 0);
}

/* What a row says of a call with so many threads: rows at once, tasks, and bytes. */
typedef struct said {
    long long rows, tasks;
    uint64_t bytes;
} said;

static said ask(const tn_kernel_row *row, call *c, int32_t threads, int64_t limit)
{
    const tn_query query = {
        .struct_size = sizeof query, .op = &c->op, .threads = threads, .setting = tell_setting};
    tn_refusal why = {.struct_size = sizeof why};
    said it = {0};
    workspace_limit = limit;
    for (int32_t i = 0; i < c->op.count; i++)
        c->op.operand[i] = c->o[i].layout;
    assert_int_equal(row->admit(row, &query, &why), TN_OK);
    assert_int_equal(why.code, TN_REFUSE_NONE);
    if (sscanf(why.text, "forms scores of %lld row%*[s] at once on each of %lld", &it.rows,
               &it.tasks) != 2)
        assert_int_equal(sscanf(why.text, "forms scores of %lld row at once on each of %lld",
                                &it.rows, &it.tasks),
                         2);
    it.bytes = row->workspace(row, &query);
    workspace_limit = -1;
    return it;
}

static void run_within(const tn_kernel_row *row, call *c, int32_t threads, int64_t limit)
{
    workspace_limit = limit;
    compute_by(row, c, threads);
    workspace_limit = -1;
}

/* Fewer bytes are fewer rows, down to one of one task, and not a bit of the result is another. */
static void a_limit_changes_rows_and_no_bit(void **state)
{
    const int64_t queries = 150, keys = test_reduced() ? 140 : 700;
    (void)state;
    find_math("cpu.attention.math");
    for (int turn = 0; turn < 8 * row_count; turn += test_reduced() ? 3 : 1) {
        const tn_kernel_row *row = rows[turn / 8];
        const tn_dtype dtype = floats[turn % 4];
        if (!computes_with(row, dtype))
            continue;
        call c = call_of(dtype, 1, 2, 1 + turn / 4 % 2, queries, keys, 24, 40);
        TN_PARAMS_MUTABLE(&c.op, attention)->left = turn % 2 ? -1 : keys * 2 / 7;
        TN_PARAMS_MUTABLE(&c.op, attention)->right = turn % 2 ? -1 : 0;
        TN_PARAMS_MUTABLE(&c.op, attention)->corner = TN_CORNER_BOTTOM_RIGHT;
        call whole = other_of(&c, 0, DENSE);
        const said free = ask(row, &c, 2, -1), one = ask(row, &c, 2, 0);
        assert_true(free.rows > 32 && free.tasks == 2);
        assert_int_equal(one.rows, 1);
        assert_int_equal(one.tasks, 1);
        assert_true(one.bytes > 0 && one.bytes < free.bytes);
        compute_by(row, &whole, 1);
        said it = free;
        for (uint64_t limit = free.bytes - 1; limit >= one.bytes;
             limit -= 1 + (limit - one.bytes) / 2) {
            call part = other_of(&c, 0, DENSE);
            it = ask(row, &c, 2, (int64_t)limit);
            assert_true(it.bytes <= limit && (it.rows < free.rows || it.tasks < free.tasks));
            run_within(row, &part, 2, (int64_t)limit);
            for (int i = 0; i < WRITTEN; i++)
                assert_memory_equal(whole.o[written[i]].memory, part.o[written[i]].memory,
                                    whole.o[written[i]].size);
            other_drop(&part);
        }
        assert_true(it.rows == 1 && it.tasks == 1);
        other_drop(&whole);
        call_drop(&c);
    }
}

/* Without a limit the scores of long rows stay within some megabytes of each task. */
static void long_rows_are_formed_few_at_a_time(void **state)
{
    (void)state;
    find_math("cpu.attention.math.");
    for (int n = 0; n < row_count; n++) {
        call c = call_of(TN_F32, 1, 1, 1, 300, 4, 8, 8);
        said few, many = ask(rows[n], &c, 2, -1);
        TN_PARAMS_MUTABLE(&c.op, attention)->keys = 200000;
        c.o[TN_ATTENTION_K].layout.shape[2] = c.o[TN_ATTENTION_V].layout.shape[2] = 200000;
        few = ask(rows[n], &c, 2, -1);
        assert_true(few.rows == 32 && many.rows > few.rows);
        assert_true(few.bytes < UINT64_C(64) << 20);
        call_drop(&c);
    }
}

/* Scores in 16 bits: errors are those of the formula in that dtype, and more than with scores of f32. */
static void narrow_scores_are_as_exact_as_the_formula(void **state)
{
    static const int64_t sizes[][4] = {{70, 300, 64, 64}, {33, 129, 300, 40}, {5, 600, 32, 129}};
    double wider = 0, narrower = 0;
    (void)state;
    const uint64_t before = dice_hold();
    find_math("cpu.attention.math");
    for (int turn = 0; turn < 12; turn++) {
        const int64_t *s = sizes[turn % 3];
        const tn_dtype dtype = floats[2 + turn / 3 % 2];
        call c = call_of(dtype, 1, 2, 1, s[0], s[1], s[2], s[3]);
        TN_PARAMS_MUTABLE(&c.op, attention)->scale = 1 / sqrt((double)s[2]);
        TN_PARAMS_MUTABLE(&c.op, attention)->right = turn < 6 ? -1 : 0;
        TN_PARAMS_MUTABLE(&c.op, attention)->softcap = turn % 4 == 3 ? 2 : 0;
        TN_PARAMS_MUTABLE(&c.op, attention)->dropout = turn % 4 == 2 ? 0.25 : 0;
        call want = other_of(&c, TN_F32, DENSE);
        double most, plain;
        call_compute(&want, 1);
        plain = plain_error(&c, &want, &most);
        for (int n = 0; n < row_count; n++) {
            if (!takes(rows[n], &c))
                continue;
            const bool narrow = rows[n]->numerics & TN_NUM_REDUCED_REDUCTION;
            call found = other_of(&c, TN_F32, DENSE);
            double error = 0;
            compute_by(rows[n], &found, 2);
            assert_out(rows[n], &found, &want,
                       2 * plain + (double)ulp(dtype, (long double)most) + 1e-7);
            for (int64_t e = 0; e < elements_of(&want.o[TN_ATTENTION_OUT].layout); e++)
                error = fmax(error, (double)fabsl(value_at(&found.o[TN_ATTENTION_OUT], e, 0) -
                                                  value_at(&want.o[TN_ATTENTION_OUT], e, 0)));
            *(narrow ? &narrower : &wider) += error;
            other_drop(&found);
        }
        other_drop(&want);
        call_drop(&c);
    }
    assert_true(wider < narrower / 8);
    dice_state = before;
}

static void set(const char *text)
{
    tn_error err = {0};
    if (tn_settings_set(text, &err))
        fail_msg("%s: %s", text, err.message);
}

static tn_decision *explain(const char *problem)
{
    tn_decision *decision = NULL;
    tn_error err = {0};
    if (tn_explain(NULL, problem, &decision, &err))
        fail_msg("%s: %s", problem, err.message);
    return decision;
}

/* The first whose name begins so. */
static const tn_candidate *candidate(const tn_decision *decision, const char *word)
{
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *it = tn_decision_candidate(decision, i);
        if (strncmp(it->kernel, word, strlen(word)) == 0)
            return it;
    }
    fail_msg("no candidate %s", word);
    return NULL;
}

static void assert_taken(const tn_decision *decision, const char *word)
{
    const tn_candidate *taken = tn_decision_chosen(decision);
    assert_non_null(taken);
    if (strncmp(taken->kernel, word, strlen(word)) != 0)
        fail_msg("%s is taken, not %s", taken->kernel, word);
}

static const char layer[] = "attention:bf16:b=1,h=4,l=2048,d=64@cpu";

/* It is taken for who asks for it, and its note says what it forms; others have none. */
static void a_decision_says_what_is_formed(void **state)
{
    tn_decision *usual = explain(layer);
    (void)state;
    assert_taken(usual, "cpu.attention.bf16.");
    assert_string_equal(tn_decision_chosen(usual)->note, "");
    assert_contains(candidate(usual, "cpu.attention.math.")->note, "forms scores of ");
    assert_null(candidate(usual, "cpu.attention.math.")->why);
    tn_decision_release(usual);
    set("attention.backend=math");
    tn_decision *asked = explain(layer);
    assert_taken(asked, "cpu.attention.math.");
    assert_string_equal(candidate(asked, "cpu.attention.bf16.")->note, "");
    const uint64_t bytes = tn_decision_chosen(asked)->workspace_bytes;
    tn_decision_release(asked);
    set("workspace.limit=3m");
    asked = explain(layer);
    assert_taken(asked, "cpu.attention.math.");
    assert_true(tn_decision_chosen(asked)->workspace_bytes < bytes);
    assert_true(tn_decision_chosen(asked)->workspace_bytes <= UINT64_C(3) << 20);
    tn_decision_release(asked);
    assert_int_equal(tn_settings_reset(NULL, NULL), TN_OK);
}

/* Not even a row fits: it is refused, with what would do. */
static void a_limit_can_be_too_small(void **state)
{
    (void)state;
    set("attention.backend=math");
    set("workspace.limit=1k");
    tn_decision *asked = explain(layer);
    const tn_candidate *math = candidate(asked, "cpu.attention.math.");
    assert_taken(asked, "cpu.attention.ref");
    assert_non_null(math->why);
    assert_int_equal(math->why->code, TN_REFUSE_MEMORY);
    assert_int_equal(math->why->found, 1024);
    assert_true(math->why->needed > 1024);
    assert_string_equal(math->note, "");
    tn_decision_release(asked);
    assert_int_equal(tn_settings_reset(NULL, NULL), TN_OK);
}

/* Scores in 16 bits are for who permits them, and pages for other kernels. */
static void what_is_not_honoured_is_refused(void **state)
{
    (void)state;
    set("attention.backend=math");
    tn_decision *asked = explain(layer);
    const tn_candidate *narrow = candidate(asked, "cpu.attention.math16.");
    assert_int_equal(narrow->verdict, TN_VERDICT_REFUSED);
    assert_int_equal(narrow->why->code, TN_REFUSE_PRECISION);
    assert_int_equal(narrow->why->needed, 32);
    assert_int_equal(narrow->why->found, 16);
    assert_contains(narrow->why->text, "cuda.allow_fp16_bf16_reduction_math_sdp=true");
    tn_decision_release(asked);
    set("cuda.allow_fp16_bf16_reduction_math_sdp=true");
    asked = explain(layer);
    narrow = candidate(asked, "cpu.attention.math16.");
    assert_true(narrow->verdict < TN_VERDICT_REFUSED);
    assert_contains(narrow->note, "forms scores of ");
    if (tni_cpu_features() & TN_CPU_BIT(AMX_BF16)) /* elsewhere those of f32 are no slower */
        assert_taken(asked, "cpu.attention.math16.amx");
    tn_decision_release(asked);
    asked = explain("attention:f32:b=1,h=4,l=64,d=64@cpu");
    assert_taken(asked, "cpu.attention.math.");
    tn_decision_release(asked);
    asked = explain("attention:f32:b=3,h=4,hk=2,lq=3,lk=70,d=64,page=16@cpu");
    assert_taken(asked, "cpu.attention.ref");
    assert_int_equal(candidate(asked, "cpu.attention.math.")->why->code, TN_REFUSE_FEATURE);
    assert_contains(candidate(asked, "cpu.attention.math.")->why->text, "page");
    tn_decision_release(asked);
    assert_int_equal(tn_settings_reset(NULL, NULL), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_changes_rows_and_no_bit),
        cmocka_unit_test(long_rows_are_formed_few_at_a_time),
        cmocka_unit_test(narrow_scores_are_as_exact_as_the_formula),
        cmocka_unit_test(a_decision_says_what_is_formed),
        cmocka_unit_test(a_limit_can_be_too_small),
        cmocka_unit_test(what_is_not_honoured_is_refused),
    };
    (void)setenv("TENON_CACHE", "", 1);
    dice_begin();
    return run_suite("kernels.cpu_attention_math", tests);
}
