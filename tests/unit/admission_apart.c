/* Kernels that take none of the small problems that kernels are tested with: they are tested with each
 * problem of their own, and trusted with that. */
#include "test.h"

#include "scratch.h"

#include "os/thread.h"
#include "policy/admission/admission_store.h"
#include "settings/context.h"
#include "tenon/module/kernel.h"
#include "tenon/tenon.h"

#include <limits.h>
#include <stdatomic.h>

static char scratch[SCRATCH_PATH];
static char heard[1024]; /* the last warning */

static void hear(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level == TN_LOG_WARNING)
        tn_text_fit(heard, sizeof heard, text);
}

static const tn_log_sink sink = {
    .struct_size = sizeof sink, .write = hear, .level = TN_LOG_WARNING};

/* Fills whole pages; the next so many runs are wrong. */
static _Atomic int runs, lies, admits;

static tn_status run_pages(const tn_run *run, tn_error *err)
{
    const tn_elementwise_op *each = TN_PARAMS(run->op, elementwise);
    float *out = tn_operand(run, TN_ELEMENTWISE_OUT);
    (void)err;
    for (int64_t i = 0; i < each->elements; i++)
        out[i] = (float)each->value;
    runs++;
    if (lies > 0 && lies-- > 0)
        out[0] += 1;
    return TN_OK;
}

static tn_status admit_pages(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    int64_t rest = TN_PARAMS(query->op, elementwise)->elements % 4096;
    (void)row;
    admits++;
    return rest == 0 ? TN_OK : tn_refuse(why, TN_REFUSE_SHAPE, "elements", 4096, rest);
}

static const tn_dtype only_f32[] = {TN_F32, TN_DTYPE_NONE};

#define ROW(word, dims, aligned)                                   \
    static const tn_kernel_row word = {.struct_size = sizeof word, \
                                       .name = "cpu.fill." #word,  \
                                       .platform = "cpu",          \
                                       .op = TN_OP_FILL,           \
                                       .version = 1,               \
                                       .dtypes = only_f32,         \
                                       .free_dims = dims,          \
                                       .alignment = aligned,       \
                                       .flops_per_us = 1,          \
                                       .bytes_per_us = 1,          \
                                       .overhead_us = 1000,        \
                                       .admit = admit_pages,       \
                                       .run = run_pages}
ROW(pages, 0, 16);
ROW(paging, TN_ELEMENTWISE_DIM_ALL, 0);
ROW(torn, 0, 0);
static const tn_kernel_row *const rows[] = {&pages, &paging, &torn, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "stranger",
                                 .version = "1.0",
                                 .kernels = rows};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static void set_up(void)
{
    static tn_registration *stranger;
    tn_error err;
    scratch_make(scratch);
    setenv("TENON_CACHE", scratch, 1);
    if (tn_log_set(&sink, &err) || tn_module_register(entry, 0, &stranger, &err))
        fail_msg("%s", err.message);
}

static const tni_kernel *kernel_of(const char *name)
{
    const tni_kernel *kernel = NULL;
    tn_error err;
    if (tni_kernel_find(name, &kernel, &err))
        fail_msg("%s", err.message);
    return kernel;
}

/* A question about a problem; the op is the caller's. */
static tni_question question_of(const char *problem, tn_op *out_op)
{
    tn_device *cpu = NULL;
    char none[8];
    tn_error err;
    if (tni_problem_parse(problem, out_op, none, sizeof none, &err) ||
        tn_device_get("cpu:0", &cpu, &err))
        fail_msg("%s", err.message);
    return (tni_question){.context = tni_context_current(), .op = out_op, .device = cpu};
}

static tn_status examine(const char *kernel, const char *problem, tn_error *err)
{
    tn_op op;
    const tni_question question = question_of(problem, &op);
    return tni_trust_examine(&question, kernel_of(kernel), -1, err);
}

static int32_t standing(const char *kernel, const char *problem, tn_refusal *why)
{
    tn_op op;
    const tni_question question = question_of(problem, &op);
    return tni_trust_of(&question, kernel_of(kernel), -1, why);
}

static const char small[] = "fill:f32:shape=77,value=1";
static const char page[] = "fill:f32:shape=4096,value=2";
static const char two_pages[] = "fill:f32:shape=8192,value=2";

/* What takes none of the small problems is tested with the problem at hand, and trusted with that. */
static void odd_ones_are_tested_with_their_own(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    tn_error err;
    (void)state;
    assert_int_equal(standing("cpu.fill.pages", page, &why), TNI_TRUST_UNTESTED);
    int before = runs;
    if (examine("cpu.fill.pages", page, &err))
        fail_msg("%s", err.message);
    assert_int_equal(runs, before + 1);
    assert_int_equal(standing("cpu.fill.pages", page, &why), TNI_TRUST_PASSED);
    assert_int_equal(standing("cpu.fill.pages", two_pages, &why), TNI_TRUST_UNTESTED);
    assert_int_equal(standing("cpu.fill.pages", "fill:f32:shape=64x64,value=3", &why),
                     TNI_TRUST_UNTESTED);
    assert_int_equal(standing("cpu.fill.pages", "fill:f32:shape=4096,value=3", &why),
                     TNI_TRUST_PASSED); /* numbers make no other plan */
    assert_int_equal(examine("cpu.fill.pages", page, &err), TN_OK);
    assert_int_equal(runs, before + 1);
    tni_trust_forget();
    assert_int_equal(standing("cpu.fill.pages", page, &why), TNI_TRUST_PASSED); /* it was kept */
    admits = 0;
    assert_int_equal(examine("cpu.fill.pages", two_pages, &err), TN_OK);
    assert_int_equal(admits, 1); /* not with the small ones again */
    assert_int_equal(standing("cpu.fill.pages", two_pages, &why), TNI_TRUST_PASSED);
    assert_int_equal(runs, before + 2);
    assert_int_equal(examine("cpu.fill.pages", small, &err), TN_UNSUPPORTED);
    assert_contains(err.message, "cpu.fill.pages supports none of the test problems, nor this "
                                 "problem");
}

/* One test serves what one plan serves. */
static void free_dimensions_make_one_problem(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    (void)state;
    assert_int_equal(examine("cpu.fill.paging", page, NULL), TN_OK);
    assert_int_equal(standing("cpu.fill.paging", two_pages, &why), TNI_TRUST_PASSED);
    assert_int_equal(standing("cpu.fill.paging", "fill:f32:shape=4096,value=2,align=4", &why),
                     TNI_TRUST_PASSED);
}

/* Memory is another problem where the kernel distinguishes its alignment. */
static void alignments_make_another_problem(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    (void)state;
    assert_int_equal(examine("cpu.fill.pages", page, NULL), TN_OK);
    assert_int_equal(standing("cpu.fill.pages", "fill:f32:shape=4096,value=2,align=16", &why),
                     TNI_TRUST_PASSED);
    assert_int_equal(standing("cpu.fill.pages", "fill:f32:shape=4096,value=2,align=8", &why),
                     TNI_TRUST_UNTESTED);
}

static void odd_ones_that_are_wrong_are_out(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    (void)state;
    heard[0] = '\0';
    lies = 1; /* once */
    assert_int_equal(examine("cpu.fill.torn", page, NULL), TN_OK);
    lies = 0;
    assert_contains(heard, "cpu.fill.torn on cpu:0 was wrong once, but right when run again");
    assert_int_equal(standing("cpu.fill.torn", page, &why), TNI_TRUST_PASSED);
    tni_trust_forget();
    assert_int_equal(standing("cpu.fill.torn", page, &why), TNI_TRUST_UNTESTED);
    lies = INT_MAX;
    assert_int_equal(examine("cpu.fill.torn", page, NULL), TN_OK);
    lies = 0;
    assert_int_equal(standing("cpu.fill.torn", page, &why), TNI_TRUST_QUARANTINED);
    assert_contains(why.text, "fill:f32:shape=4096,value=2: output 0 is 3, the reference has 2");
    assert_int_equal(standing("cpu.fill.torn", two_pages, &why), TNI_TRUST_QUARANTINED);
}

/* What would take too much is refused, and says so. */
static void tests_have_their_limits(void **state)
{
    static const char vast[] = "fill:f32:shape=134217728,value=2"; /* 512 MiB */
    tn_refusal why = {.struct_size = sizeof why};
    tn_context *never = NULL;
    const tn_change change = tn_with_admission(TN_ADMISSION_NEVER);
    tn_op op;
    (void)state;
    tni_trust_forget();
    int before = runs;
    assert_int_equal(examine("cpu.fill.pages", vast, NULL), TN_OK);
    assert_int_equal(runs, before);
    assert_int_equal(standing("cpu.fill.pages", vast, &why), TNI_TRUST_UNTESTABLE);
    assert_int_equal(why.code, TN_REFUSE_SETTING);
    assert_string_equal(why.what, "bytes of a test");
    assert_true(why.needed > 512 << 20);
    assert_int_equal(why.found, 256 << 20);
    assert_contains(why.text, "admission=never uses it untested");
    tni_question asked = question_of(vast, &op);
    assert_int_equal(tn_context_derive(NULL, &change, 1, &never, NULL), TN_OK);
    asked.context = never;
    assert_int_equal(tni_trust_of(&asked, kernel_of("cpu.fill.pages"), -1, &why),
                     TNI_TRUST_NEEDLESS);
    tn_context_release(never);
}

/* More problems than are kept in memory: those that were given up come back from the cache. */
static void many_problems_are_remembered(void **state)
{
    enum { PROBLEMS = 1100 };
    tn_refusal why = {.struct_size = sizeof why};
    char problem[64];
    (void)state;
    int before = runs;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 1; i <= PROBLEMS; i++) {
            snprintf(problem, sizeof problem, "fill:f32:shape=%dx4096,value=2,so=4096;1,align=4",
                     i);
            if (pass == 0 && (i == 1 || i == PROBLEMS))
                assert_int_equal(examine("cpu.fill.pages", problem, NULL), TN_OK);
            int32_t stands = standing("cpu.fill.pages", problem, &why);
            assert_int_equal(stands,
                             i == 1 || i == PROBLEMS ? TNI_TRUST_PASSED : TNI_TRUST_UNTESTED);
        }
    }
    assert_int_equal(runs, before + 2);
}

typedef struct asker {
    const char *problem;
    tn_status status;
} asker;

static void ask(void *user)
{
    asker *self = user;
    self->status = examine("cpu.fill.pages", self->problem, NULL);
}

/* Whoever comes first tests a problem; the others wait, and test their own after it. */
static void threads_test_each_problem_once(void **state)
{
    enum { THREADS = 8 };
    static const char *const problems[] = {"fill:f32:shape=12288,value=2",
                                           "fill:f32:shape=24576,value=2"};
    tni_thread threads[THREADS];
    asker askers[THREADS];
    tn_refusal why = {.struct_size = sizeof why};
    (void)state;
    int before = runs;
    for (int i = 0; i < THREADS; i++) {
        askers[i] = (asker){problems[i % 2], TN_INTERNAL};
        assert_int_equal(tni_thread_create(&threads[i], ask, &askers[i], NULL), TN_OK);
    }
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(askers[i].status, TN_OK);
        assert_int_equal(standing("cpu.fill.pages", askers[i].problem, &why), TNI_TRUST_PASSED);
    }
    assert_int_equal(runs, before + 2);
}

/* The verdict of an explanation that requires the kernel. */
static int32_t explained_of(const char *rule, const char *problem, char *out_text, size_t size)
{
    tn_context *context = NULL;
    tn_decision *decision = NULL;
    tn_change change;
    const tn_candidate *found = NULL;
    const char *message;
    tn_error err;
    if (tn_setting_parse(rule, &change, &err) ||
        tn_context_derive(NULL, &change, 1, &context, &err) ||
        tn_explain(context, problem, &decision, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        if (strstr(rule, tn_decision_candidate(decision, i)->kernel))
            found = tn_decision_candidate(decision, i);
    }
    assert_non_null(found);
    int32_t verdict = found->verdict;
    (void)tn_decision_status(decision, &message);
    tn_text_fit(out_text, size, message);
    tn_decision_release(decision);
    tn_context_release(context);
    return verdict;
}

static void odd_ones_are_explained(void **state)
{
    static const char rule[] = "rules=require:cpu.fill.pages";
    char text[512];
    (void)state;
    assert_int_equal(explained_of(rule, page, text, sizeof text), TN_VERDICT_CHOSEN);
    assert_int_equal(explained_of(rule, "fill:f32:shape=16384,value=2", text, sizeof text),
                     TN_VERDICT_UNTESTED);
    assert_int_equal(explained_of(rule, "fill:f32:shape=134217728,value=2", text, sizeof text),
                     TN_VERDICT_REFUSED);
    assert_contains(text, "cpu.fill.pages: setting: bytes of a test: expected 536");
}

/* A call tests what it takes. */
static void odd_ones_are_planned(void **state)
{
    tn_context *context = NULL;
    tn_change change;
    tn_error err;
    (void)state;
    if (tn_setting_parse("rules=require:cpu.fill.pages", &change, &err) ||
        tn_context_derive(NULL, &change, 1, &context, &err))
        fail_msg("%s", err.message);
    int before = runs;
    if (tn_prepare(context, "fill:f32:shape=20480,value=2@cpu:0", &err))
        fail_msg("%s", err.message);
    assert_int_equal(runs, before + 1);
    assert_int_equal(tn_prepare(context, "fill:f32:shape=134217728,value=2@cpu:0", &err),
                     TN_REFUSED);
    assert_contains(err.message, "admission=never uses it untested");
    tn_context_release(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_ones_are_tested_with_their_own),
        cmocka_unit_test(free_dimensions_make_one_problem),
        cmocka_unit_test(alignments_make_another_problem),
        cmocka_unit_test(odd_ones_that_are_wrong_are_out),
        cmocka_unit_test(tests_have_their_limits),
        cmocka_unit_test(many_problems_are_remembered),
        cmocka_unit_test(threads_test_each_problem_once),
        cmocka_unit_test(odd_ones_are_explained),
        cmocka_unit_test(odd_ones_are_planned),
    };
    set_up();
    int failed = run_suite("unit.admission_apart", tests);
    scratch_remove(scratch);
    return failed;
}
