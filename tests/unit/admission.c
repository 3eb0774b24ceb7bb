/* Who may be trusted: kernels of the platform `described`, whose devices are honest, lie, or fail, and one
 * of the test's own. */
#include "test.h"

#include "base_isa.h"
#include "scratch.h"

#include "os/thread.h"
#include "policy/admission/admission_store.h"
#include "policy/admission/smoke.h"
#include "settings/context.h"
#include "tenon/module/kernel.h"
#include "tenon/tenon.h"

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

static const char devices[] =
    "[device honest]\nplatform = described\nname = honest\nmemory = 64 MiB\n"
    "[device liar]\nplatform = described\nname = liar\nmemory = 64 MiB\nbehaviour.lie_every = 1\n"
    "[device flaky]\nplatform = described\nname = flaky\nmemory = 64 MiB\nbehaviour.lie_every = 7\n"
    "[device halting]\nplatform = described\nname = halting\nmemory = 64 MiB\n"
    "behaviour.fail_run = 3\n"
    "[device tight]\nplatform = described\nname = tight\nmemory = 1 KiB\n"
    "[device late]\nplatform = described\nname = late\nmemory = 64 MiB\n";

static const tni_kernel *kernel_of(const char *name)
{
    const tni_kernel *kernel = NULL;
    tn_error err;
    if (tni_kernel_find(name, &kernel, &err))
        fail_msg("%s", err.message);
    return kernel;
}

static tn_device *device_of(const char *name)
{
    tn_device *device = NULL;
    tn_error err;
    if (tn_device_get(name, &device, &err))
        fail_msg("%s", err.message);
    return device;
}

static const char small_fill[] = "fill:f32:shape=77,value=1";

/* A question about a problem, on a device; the op is the caller's. */
static tni_question question_of(const char *problem, const char *device, tn_op *out_op)
{
    char none[8];
    tn_error err;
    if (tni_problem_parse(problem, out_op, none, sizeof none, &err))
        fail_msg("%s", err.message);
    return (tni_question){
        .context = tni_context_current(), .op = out_op, .device = device_of(device)};
}

/* Tests a kernel for a problem on the cpu; how it stands there. */
static tn_status examine(const char *kernel, const char *problem, tn_error *err)
{
    tn_op op;
    const tni_question question = question_of(problem, "cpu:0", &op);
    return tni_trust_examine(&question, kernel_of(kernel), -1, err);
}

static int32_t standing(const char *kernel, const char *problem, tn_refusal *why)
{
    tn_op op;
    const tni_question question = question_of(problem, "cpu:0", &op);
    return tni_trust_of(&question, kernel_of(kernel), -1, why);
}

/* A kernel for the cpu that counts who is inside it. */
static _Atomic int inside, most_inside, runs;
static _Atomic tn_status inner_status;
static const char *asks; /* from inside its run, for itself */

static tn_status run_counting(const tn_run *run, tn_error *err)
{
    (void)err;
    int now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
        continue;
    if (asks)
        atomic_store(&inner_status, examine(asks, small_fill, NULL));
    const tn_elementwise_op *each = TN_PARAMS(run->op, elementwise);
    for (int64_t i = 0; i < each->elements; i++)
        ((float *)tn_operand(run, TN_ELEMENTWISE_OUT))[i] = (float)each->value;
    atomic_fetch_add(&runs, 1);
    atomic_fetch_sub(&inside, 1);
    return TN_OK;
}

static const tn_dtype only_f32[] = {TN_F32, TN_DTYPE_NONE};

#define FILL_ROW(row_name)                                                                 \
    {                                                                                      \
        .struct_size = sizeof(tn_kernel_row), .name = row_name, .platform = "cpu",         \
        .op = TN_OP_FILL, .version = 1, .dtypes = only_f32, .numerics = TN_NUM_RUN_TO_RUN, \
        .free_dims = TN_ELEMENTWISE_DIM_ALL, .flops_per_us = 1, .bytes_per_us = 1,         \
        .overhead_us = 1000, .run = run_counting                                           \
    }
static const tn_kernel_row one = FILL_ROW("cpu.fill.one"), two = FILL_ROW("cpu.fill.two");
static const tn_kernel_row *const fill_rows[] = {&one, &two, NULL};
static const tn_module fill_module = {.struct_size = sizeof fill_module,
                                      TN_MODULE_ABI,
                                      .name = "stranger",
                                      .version = "1.0",
                                      .kernels = fill_rows};

static tn_status fill_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &fill_module;
    return TN_OK;
}

static void set_up(void)
{
    static tn_registration *described, *stranger;
    char path[SCRATCH_PATH + 16];
    tn_error err;
    scratch_make(scratch);
    setenv("TENON_CACHE", scratch, 1);
    snprintf(path, sizeof path, "%s/devices", scratch);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(devices, file) >= 0);
    assert_int_equal(fclose(file), 0);
    if (tn_log_set(&sink, &err) || tn_module_register(tn_module_entry, 0, &described, &err) ||
        tn_module_register(fill_entry, 0, &stranger, &err) || tn_device_file_add(path, &err))
        fail_msg("%s", err.message);
}

static int32_t trust_in(const char *device, int32_t admission, tn_refusal *why)
{
    const tn_change change = tn_with_admission(admission);
    tn_context *context = NULL;
    assert_int_equal(tn_context_derive(NULL, &change, 1, &context, NULL), TN_OK);
    tn_op op;
    tni_question question = question_of("matmul:f32:m=4,n=4,k=4", device, &op);
    question.context = context;
    int32_t trust = tni_trust_of(&question, kernel_of("described.matmul.plain"), -1, why);
    tn_context_release(context);
    return trust;
}

static int32_t trust_now(const char *device)
{
    tn_refusal why = {.struct_size = sizeof why};
    return trust_in(device, TN_ADMISSION_AUTO, &why);
}

static tn_status test_on(const char *device, tn_error *err)
{
    tn_op op;
    const tni_question question = question_of("matmul:f32:m=4,n=4,k=4", device, &op);
    return tni_trust_examine(&question, kernel_of("described.matmul.plain"), -1, err);
}

/* The verdict in an explanation of a small problem. */
static int32_t explained(const char *device, char *out_text, size_t size)
{
    char problem[128];
    tn_decision *decision = NULL;
    tn_error err;
    snprintf(problem, sizeof problem, "matmul:f32:m=4,n=4,k=4@%s", tn_device_id(device_of(device)));
    if (tn_explain(NULL, problem, &decision, &err))
        fail_msg("%s", err.message);
    assert_int_equal(tn_decision_count(decision), 1);
    const tn_candidate *candidate = tn_decision_candidate(decision, 0);
    int32_t verdict = candidate->verdict;
    tn_text_fit(out_text, size, candidate->why ? candidate->why->text : "");
    tn_decision_release(decision);
    return verdict;
}

static void strangers_are_tested_and_pass(void **state)
{
    char text[256];
    tn_error err;
    (void)state;
    assert_int_equal(trust_now("honest"), TNI_TRUST_UNTESTED);
    assert_int_equal(explained("honest", text, sizeof text), TN_VERDICT_UNTESTED);
    uint64_t generation = tni_dispatch_generation();
    if (tn_prepare(NULL, "matmul:f32:m=4,n=4,k=4@described:0", &err))
        fail_msg("%s", err.message);
    assert_int_equal(trust_now("honest"), TNI_TRUST_PASSED);
    assert_int_equal(explained("honest", text, sizeof text), TN_VERDICT_CHOSEN);
    assert_true(tni_dispatch_generation() == generation); /* plans that others have stay good */
    tni_trust_forget();
    assert_int_equal(trust_now("honest"), TNI_TRUST_PASSED); /* it was kept */
}

/* What an explanation says runs now and once tested; no verdict may contradict that. NULL context: the thread's. */
static void assert_runs(const tn_context *context, const char *problem, const char *now,
                        const char *once_tested)
{
    tn_decision *decision = NULL;
    tn_error err;
    if (tn_explain(context, problem, &decision, &err))
        fail_msg("%s", err.message);
    const tn_candidate *runs_now = tn_decision_runs_now(decision);
    const tn_candidate *later = tn_decision_runs_once_tested(decision);
    assert_string_equal(runs_now ? runs_now->kernel : "nothing", now);
    assert_string_equal(later ? later->kernel : "nothing", once_tested);
    assert_ptr_equal(tn_decision_chosen(decision), later ? later : runs_now);
    for (size_t i = 0; i < tn_decision_count(decision); i++) {
        const tn_candidate *candidate = tn_decision_candidate(decision, i);
        bool is_chosen = candidate->verdict == TN_VERDICT_CHOSEN;
        assert_int_equal(is_chosen, !later && candidate == runs_now);
        if (candidate == later)
            assert_int_equal(candidate->verdict, TN_VERDICT_UNTESTED);
        if (candidate == runs_now && later)
            assert_int_equal(candidate->verdict, TN_VERDICT_ADMITTED);
    }
    tn_decision_release(decision);
}

/* On a platform without a reference, and on one with it. */
static void explanations_say_what_runs(void **state)
{
    static const char described[] = "matmul:f32:m=4,n=4,k=4@described:0";
    static const char softmax[] = "softmax:f32:shape=4x8@cpu:0";
    const tn_change tested[] = {tn_with_admission(TN_ADMISSION_ALWAYS),
                                tn_with_rules(TN_PREFER, "cpu.softmax." BASE_ISA)};
    const tn_change nothing = tn_with_rules(TN_FORBID, "softmax/platform:cpu");
    tn_context *always = NULL, *none = NULL;
    tn_error err;
    (void)state;
    assert_runs(NULL, described, "nothing", "described.matmul.plain");
    assert_int_equal(tn_context_derive(NULL, tested, 2, &always, &err), TN_OK);
    assert_int_equal(tn_context_derive(always, &nothing, 1, &none, &err), TN_OK);
    assert_runs(always, softmax, "cpu.softmax.ref", "cpu.softmax." BASE_ISA);
    assert_runs(none, softmax, "nothing", "nothing");
    if (tn_prepare(always, softmax, &err))
        fail_msg("%s", err.message);
    assert_runs(always, softmax, "cpu.softmax." BASE_ISA, "nothing");
    assert_null(tn_decision_runs_now(NULL));
    assert_null(tn_decision_runs_once_tested(NULL));
    tn_context_release(none);
    tn_context_release(always);
}

static void liars_are_put_into_quarantine(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    char text[256];
    tn_error err;
    (void)state;
    assert_int_equal(explained("liar", text, sizeof text), TN_VERDICT_UNTESTED);
    uint64_t generation = tni_dispatch_generation();
    heard[0] = '\0';
    assert_int_not_equal(tn_prepare(NULL, "matmul:f32:m=4,n=4,k=4@described:1", &err), TN_OK);
    assert_contains(err.message, "described.matmul.plain");
    assert_true(tni_dispatch_generation() != generation);
    assert_contains(heard, "described.matmul.plain on described:1 is quarantined: matmul:f32:m=");
    assert_int_equal(explained("liar", text, sizeof text), TN_VERDICT_QUARANTINED);
    assert_contains(text, "output 0 is ");
    for (int32_t admission = TN_ADMISSION_AUTO; admission <= TN_ADMISSION_NEVER; admission++)
        assert_int_equal(trust_in("liar", admission, &why), TNI_TRUST_QUARANTINED);
    assert_int_equal(why.code, TN_REFUSE_QUARANTINE);
    tni_trust_forget();
    assert_int_equal(trust_now("liar"), TNI_TRUST_QUARANTINED); /* it was kept */
    assert_int_equal(trust_now("honest"), TNI_TRUST_PASSED);    /* and is of that device alone */
}

static void chance_is_no_verdict(void **state)
{
    tn_error err;
    (void)state;
    heard[0] = '\0';
    if (test_on("flaky", &err))
        fail_msg("%s", err.message);
    assert_int_equal(trust_now("flaky"), TNI_TRUST_PASSED);
    assert_contains(heard,
                    "described.matmul.plain on described:2 was wrong once, but right when run");
    tni_trust_forget();
    assert_int_equal(trust_now("flaky"), TNI_TRUST_UNTESTED); /* for this process only */
}

static void failures_mean_not_now(void **state)
{
    tn_error err;
    (void)state;
    assert_int_equal(test_on("halting", &err), TN_BUSY);
    assert_contains(err.message, "could not be tested");
    assert_contains(err.message, "run 3 of described:3");
    assert_int_equal(trust_now("halting"), TNI_TRUST_UNTESTED);
    assert_int_equal(test_on("halting", &err), TN_OK);
    assert_int_equal(trust_now("halting"), TNI_TRUST_PASSED);
    assert_int_equal(test_on("tight", &err), TN_OUT_OF_MEMORY);
    assert_int_equal(trust_now("tight"), TNI_TRUST_UNTESTED);
}

static void setting_says_who_is_tested(void **state)
{
    const tni_kernel *own = NULL, *reference = kernel_of("cpu.matmul.ref");
    tn_device *cpu = device_of("cpu:0");
    tn_refusal why = {.struct_size = sizeof why};
    tn_context *contexts[3];
    tn_op op;
    tni_question asked = question_of("matmul:f32:m=4,n=4,k=4", "cpu:0", &op);
    (void)state;
    for (int32_t i = TN_ADMISSION_AUTO; i <= TN_ADMISSION_NEVER; i++) {
        const tn_change change = tn_with_admission(i);
        assert_int_equal(tn_context_derive(NULL, &change, 1, &contexts[i], NULL), TN_OK);
        asked.context = contexts[i];
        assert_int_equal(tni_trust_of(&asked, reference, -1, &why), TNI_TRUST_NEEDLESS);
    }
    for (size_t i = 0; !own && tni_kernel_at(i); i++) {
        if (tni_kernel_at(i)->own && !tni_kernel_at(i)->reference && !tni_kernel_at(i)->library)
            own = tni_kernel_at(i);
    }
    assert_non_null(own);
    const char *architecture = cpu->properties.architecture;
    bool listed = strcmp(architecture, "x86_64") == 0 || strcmp(architecture, "aarch64") == 0;
    asked.context = contexts[TN_ADMISSION_AUTO];
    assert_int_equal(tni_trust_of(&asked, own, -1, &why),
                     listed ? TNI_TRUST_NEEDLESS : TNI_TRUST_UNTESTED);
    asked.context = contexts[TN_ADMISSION_ALWAYS];
    assert_int_equal(tni_trust_of(&asked, own, -1, &why), TNI_TRUST_UNTESTED);
    assert_int_equal(trust_in("late", TN_ADMISSION_NEVER, &why), TNI_TRUST_NEEDLESS);
    assert_int_equal(trust_in("late", TN_ADMISSION_AUTO, &why), TNI_TRUST_UNTESTED);
    for (size_t i = 0; i < 3; i++)
        tn_context_release(contexts[i]);
}

static void what_was_wrong_at_run_time_is_out(void **state)
{
    tn_refusal why = {.struct_size = sizeof why};
    uint64_t generation = tni_dispatch_generation();
    (void)state;
    tni_trust_quarantine(kernel_of("described.matmul.plain"), device_of("late"), -1, "seen\ntwice");
    assert_true(tni_dispatch_generation() != generation);
    tni_trust_forget();
    assert_int_equal(trust_in("late", TN_ADMISSION_NEVER, &why), TNI_TRUST_QUARANTINED);
    assert_string_equal(why.text, "seen\\x0atwice");
    tni_trust_quarantine(kernel_of("cpu.matmul.ref"), device_of("cpu:0"), -1, "never");
    assert_int_equal(standing("cpu.matmul.ref", "matmul:f32:m=4,n=4,k=4", &why),
                     TNI_TRUST_NEEDLESS);
}

/* Changes a byte in the middle of every file of the cache. */
static int damage(const char *path, const struct stat *facts, int type, struct FTW *position)
{
    (void)position;
    if (type != FTW_F || !strstr(path, "/admission/"))
        return 0;
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)facts->st_size - 4, SEEK_SET), 0);
    int c = fgetc(file);
    assert_int_equal(fseek(file, (long)facts->st_size - 4, SEEK_SET), 0);
    assert_int_equal(fputc(c ^ 1, file), c ^ 1);
    assert_int_equal(fclose(file), 0);
    return 0;
}

static void damaged_verdicts_count_for_nothing(void **state)
{
    (void)state;
    assert_int_equal(trust_now("honest"), TNI_TRUST_PASSED);
    assert_int_equal(nftw(scratch, damage, 16, FTW_PHYS), 0);
    tni_trust_forget();
    assert_int_equal(trust_now("honest"), TNI_TRUST_UNTESTED);
    assert_int_equal(trust_now("liar"), TNI_TRUST_UNTESTED);
    assert_int_equal(test_on("liar", NULL), TN_OK);
    assert_int_equal(trust_now("liar"), TNI_TRUST_QUARANTINED);
}

static void verdicts_are_text(void **state)
{
    static const char *const wrong[] = {
        "",        "verdict = maybe\n",       "verdict = quarantined\n",
        "verdict", "[s]\nverdict = passed\n", "why = x\n"};
    const tni_exam exam = {kernel_of("cpu.matmul.ref"), device_of("cpu:0"), -1, NULL};
    const tni_trust said = {.verdict = TNI_TRUST_QUARANTINED, .text = "a \"quoted\" # \\ text"};
    tni_trust again = {.verdict = 77};
    tni_buffer text = {0};
    tn_error err;
    (void)state;
    assert_int_equal(tni_trust_write(&exam, &said, &text, &err), TN_OK);
    assert_int_equal(tni_trust_read(text.text, text.length, &again, &err), TN_OK);
    assert_int_equal(again.verdict, TNI_TRUST_QUARANTINED);
    assert_string_equal(again.text, said.text);
    again.verdict = 77;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tni_trust_read(wrong[i], strlen(wrong[i]), &again, &err), TN_CORRUPT);
        assert_int_equal(again.verdict, 77);
    }
    tni_buffer_release(&text);
}

static void test_fill(void *user)
{
    tn_status *status = user;
    *status = examine("cpu.fill.one", small_fill, NULL);
}

/* Whoever comes first tests; the others wait, and are content with what it found. */
static void one_thread_tests(void **state)
{
    enum { THREADS = 8 };
    tni_thread threads[THREADS];
    tn_status statuses[THREADS];
    tn_refusal why = {.struct_size = sizeof why};
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], test_fill, &statuses[i], NULL), TN_OK);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(statuses[i], TN_OK);
    assert_int_equal(atomic_load(&most_inside), 1);
    assert_int_equal(atomic_load(&runs), 2); /* problems that it takes, once each */
    assert_int_equal(standing("cpu.fill.one", small_fill, &why), TNI_TRUST_PASSED);
}

/* A kernel under test that asks for its own test would wait for itself. */
static void kernel_cannot_wait_for_its_own_test(void **state)
{
    (void)state;
    asks = "cpu.fill.two";
    tn_status status = examine(asks, small_fill, NULL);
    asks = NULL;
    assert_int_equal(status, TN_OK);
    assert_int_equal(atomic_load(&inner_status), TN_BUSY);
}

/* Of each op the problems ask at least once for everything that it can be asked for. */
static void smoke_problems_ask_for_everything(void **state)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8, TN_C64, TN_C128};
    static const uint64_t each = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_BROADCAST;
    static const uint64_t wanted[TN_OP_KIND_MAX] = {
        [TN_OP_MATMUL] = (1 << 10) - 1,
        [TN_OP_PERMUTE] = each,
        [TN_OP_CAST] = each,
        [TN_OP_FILL] = TN_ELEMENTWISE_USES_STRIDES,
        [TN_OP_UNARY] = each | TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
        [TN_OP_BINARY] = each | TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE,
        [TN_OP_REDUCE] = each | TN_ELEMENTWISE_USES_OUT_DTYPE,
        [TN_OP_SOFTMAX] = each | TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE |
                          TN_ELEMENTWISE_USES_LOG,
        [TN_OP_NORM] = each | TN_ELEMENTWISE_USES_OUT_DTYPE | TN_ELEMENTWISE_USES_IN_PLACE |
                       TN_ELEMENTWISE_USES_WEIGHT | TN_ELEMENTWISE_USES_BIAS,
        [TN_OP_ROTARY] = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_OUT_DTYPE |
                         TN_ELEMENTWISE_USES_IN_PLACE | TN_ELEMENTWISE_USES_PARTIAL,
        [TN_OP_ATTENTION] = (1 << 16) - 1,
        [TN_OP_ATTENTION_BACKWARD] = TN_ATTENTION_USES_WINDOW | TN_ATTENTION_USES_MASK |
                                     TN_ATTENTION_USES_ADDITIVE | TN_ATTENTION_USES_GROUPS |
                                     TN_ATTENTION_USES_SOFTCAP | TN_ATTENTION_USES_DROPOUT |
                                     TN_ATTENTION_USES_VALUE_SIZE | TN_ATTENTION_USES_STRIDES |
                                     TN_ATTENTION_USES_OFFSET | TN_ATTENTION_USES_SEED,
        [TN_OP_ATTENTION_MERGE] = TN_ELEMENTWISE_USES_STRIDES | TN_ELEMENTWISE_USES_OUT_DTYPE,
    };
    (void)state;
    for (int32_t op = TN_OP_NONE + 1; op < TN_OP_KIND_MAX; op++) {
        uint64_t uses = 0;
        assert_int_equal(tni_smoke_count(op) > 0, tni_op_class_of(op) != NULL);
        if (!tni_op_class_of(op))
            continue;
        for (size_t i = 0; i < tni_smoke_count(op); i++) {
            bool any = false;
            for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
                tn_op made;
                if (!tni_smoke_make(op, i, dtypes[d], &made))
                    continue;
                any = true;
                uses |= made.uses;
            }
            if (!any)
                fail_msg("problem %zu of %s is none", i, tni_op_class_of(op)->word);
        }
        assert_int_equal(uses & wanted[op], wanted[op]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explanations_say_what_runs),
        cmocka_unit_test(strangers_are_tested_and_pass),
        cmocka_unit_test(liars_are_put_into_quarantine),
        cmocka_unit_test(chance_is_no_verdict),
        cmocka_unit_test(failures_mean_not_now),
        cmocka_unit_test(setting_says_who_is_tested),
        cmocka_unit_test(what_was_wrong_at_run_time_is_out),
        cmocka_unit_test(damaged_verdicts_count_for_nothing),
        cmocka_unit_test(verdicts_are_text),
        cmocka_unit_test(one_thread_tests),
        cmocka_unit_test(kernel_cannot_wait_for_its_own_test),
        cmocka_unit_test(smoke_problems_ask_for_everything),
    };
    set_up();
    int failed = run_suite("unit.admission", tests);
    scratch_remove(scratch);
    return failed;
}
