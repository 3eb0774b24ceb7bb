/* What the environment says, and which place goes before which: every row by its variable, and what
 * becomes of all that cannot be taken. */
#include "settings_child.h"

#include "fault/fault.h"
#include "os/cpu_level.h"
#include "os/parallel.h"

static void every_row_by_its_variable(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char variable[ROW_TEXT], origin[128], expected[ROW_TEXT];
        const char *name = tn_setting_info(i)->environment;
        snprintf(variable, sizeof variable, "%s=%s", name, other_value(i));
        snprintf(origin, sizeof origin, "environment: %s", name);
        expect(i, other_value(i), origin, expected);
        assert_string_equal(ask_with(variable, NULL), expected);
    }
}

static void say_view(FILE *say, const void *user)
{
    tn_setting view = *(const tn_setting *)user;
    tn_origin origin = {.struct_size = sizeof origin};
    (void)tn_setting_origin(NULL, view, &origin, NULL);
    fprintf(say, "%s [%s]", text_in(NULL, view), origin.text);
}

static void a_view_names_the_variable_that_was_set(void **state)
{
    const tn_setting view = TN_SETTING_CUDA_MATMUL_ALLOW_TF32;
    (void)state;
    assert_string_equal(ask_run("TENON_CUDA_MATMUL_ALLOW_TF32=1", NULL, say_view, &view),
                        "true [environment: TENON_CUDA_MATMUL_ALLOW_TF32, through "
                        "cuda.matmul.fp32_precision]");
    assert_string_equal(ask_run("TENON_FP32_PRECISION=tf32", NULL, say_view, &view),
                        "true [environment: TENON_FP32_PRECISION, through fp32_precision]");
    assert_string_equal(ask_run("TENON_FLOAT32_MATMUL_PRECISION=high", NULL, say_view, &view),
                        "true [environment: TENON_FLOAT32_MATMUL_PRECISION, through "
                        "cuda.matmul.fp32_precision]");
}

/* A view's variable and its row's: the row's goes before, in whichever order they stand. */
static void the_order_of_the_environment_means_nothing(void **state)
{
    static const char row[] = "TENON_CUDA_MATMUL_FP32_PRECISION=ieee";
    static const char view[] = "TENON_CUDA_MATMUL_ALLOW_TF32=1";
    static const char expected[] =
        "cuda.matmul.fp32_precision=ieee [environment: TENON_CUDA_MATMUL_FP32_PRECISION]\n";
    (void)state;
    assert_string_equal(ask_with(row, view), expected);
    assert_string_equal(ask_with(view, row), expected);
}

/* "level value" of the row, at every level in turn. */
static void say_levels(FILE *say, const void *user)
{
    tn_setting row = *(const tn_setting *)user;
    char one[ROW_TEXT], two[ROW_TEXT];
    tn_change changes[2];
    tn_context *context = NULL;
    tn_scope scope = {0};
    snprintf(one, sizeof one, "%s=%s", key_of(row), tn_setting_info(row)->standard);
    snprintf(two, sizeof two, "%s=%s", key_of(row), other_value(row));
    (void)tn_setting_parse(one, &changes[0], NULL);
    (void)tn_setting_parse(two, &changes[1], NULL);
#define SAY(context)                                                                 \
    do {                                                                             \
        tn_origin origin = {.struct_size = sizeof origin};                           \
        (void)tn_setting_origin(context, row, &origin, NULL);                        \
        fprintf(say, "%s %d\n", tn_level_name(origin.level),                         \
                strcmp(text_in(context, row), tn_setting_info(row)->standard) == 0); \
    } while (0)
    SAY(NULL);
    (void)tn_settings_change(&changes[0], 1, NULL);
    SAY(NULL);
    if (!tn_setting_info(row)->process_only) {
        (void)tn_scope_enter(&scope, &changes[1], 1, NULL);
        SAY(NULL);
        (void)tn_context_derive(NULL, &changes[0], 1, &context, NULL);
        SAY(context);
        tn_context_release(context);
        SAY(NULL);
        tn_scope_leave(&scope);
    }
    SAY(NULL);
    (void)tn_settings_reset(key_of(row), NULL);
    SAY(NULL);
    (void)tn_settings_change(&changes[1], 1, NULL);
    (void)tn_settings_reset(NULL, NULL);
    SAY(NULL);
#undef SAY
}

/* The standard value and another one in turn, so that each level differs from the one below. */
static void the_nearer_place_goes_before(void **state)
{
    char variable[ROW_TEXT], text[ROW_TEXT];
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tn_setting_facts *facts = tn_setting_info(i);
        if (facts->view || tni_setting_row_of(i)->kind == TN_VALUE_RULES)
            continue;
        snprintf(text, sizeof text, "%s = %s\n", facts->key, facts->standard);
        write_file(config_file, text);
        assert_contains(ask_run(config_variable, NULL, say_levels, &i), "file 1\nprocess 1\n");
        snprintf(variable, sizeof variable, "%s=%s", facts->environment, other_value(i));
        assert_string_equal(
            ask_run(config_variable, variable, say_levels, &i),
            facts->process_only
                ? "environment 0\nprocess 1\nprocess 1\nenvironment 0\nenvironment 0\n"
                : "environment 0\nprocess 1\nscope 0\ncall 1\nscope 0\nprocess 1\n"
                  "environment 0\nenvironment 0\n");
    }
}

/* Nothing is said but the problem, and what the other variable says. */
static void bad_values_of_variables_are_told_and_ignored(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        const char *other = i == TN_SETTING_INFERENCE ? "TENON_DEBUG_SYNC" : "TENON_INFERENCE";
        char variable[256], good[64], told[512];
        snprintf(variable, sizeof variable, "%s=a  \"b\"\x01", row->facts.environment);
        snprintf(good, sizeof good, "%s=on", other);
        snprintf(told, sizeof told, "%s=true [environment: %s]\n! %s: ",
                 i == TN_SETTING_INFERENCE ? "debug.sync" : "inference", other,
                 row->facts.environment);
        const char *said = ask_with(variable, good);
        assert_int_equal(strncmp(said, told, strlen(told)), 0);
        assert_int_equal(strcspn(said + strlen(told), "\n\x01"), strlen(said + strlen(told)) - 1);
        if (row->kind < TN_VALUE_RULE)
            assert_contains(said, row->facts.allowed);
        snprintf(variable, sizeof variable, "%s=", row->facts.environment);
        bool is_list = row->kind == TN_VALUE_RULES; /* which may be empty */
        assert_int_equal(strstr(ask_with(variable, NULL), "! ") == NULL, is_list);
    }
    assert_string_equal(
        ask_with("TENON_FP32_PRECISION=ieeee", NULL),
        "! TENON_FP32_PRECISION: fp32_precision cannot be \"ieeee\"; allowed: none, "
        "ieee, tf32, bf16; did you mean ieee?\n");
}

static void strange_variables_are_told_with_the_nearest(void **state)
{
    (void)state;
    assert_string_equal(ask_with("TENON_CPU_THREAD=2", NULL),
                        "! TENON_CPU_THREAD: unknown variable; did you mean TENON_CPU_THREADS?\n");
    assert_string_equal(ask_with("TENON_PLATFROM=cpu", NULL),
                        "! TENON_PLATFROM: unknown variable; did you mean TENON_PLATFORM?\n");
    assert_string_equal(ask_with("TENON_=1", "TENON_WHO_KNOWS_WHAT_THIS_IS=1"),
                        "! TENON_: unknown variable\n"
                        "! TENON_WHO_KNOWS_WHAT_THIS_IS: unknown variable\n");
    assert_string_equal(ask_with("TENON_A\x01Z\xff=1", NULL),
                        "! TENON_A\\x01Z\\xff: unknown variable\n");
    assert_string_equal(ask_with("TN_TEST_ANYTHING=1", "TENON_LOCK=x"), "");
    assert_string_equal(ask_with("TENON_LOG=debug", "TENONINFERENCE=1"), "");
}

/* A level that this processor lacks is not followed, and says so; the rest of the environment is. */
static void a_level_that_is_not_here_is_told(void **state)
{
    bool x86 = tn_cpu_architecture() == TN_CPU_ARCH_X86;
    const char *said =
        ask_with(x86 ? "TENON_CPU_ISA_MASK=sve" : "TENON_CPU_ISA_MASK=avx2", "TENON_CPU_THREADS=3");
    (void)state;
    assert_contains(said, "cpu.threads=3 [environment: TENON_CPU_THREADS]\n! TENON_CPU_ISA_MASK: ");
    assert_contains(said, "is not usable on this processor");
    assert_null(strstr(said, "cpu.isa_mask="));
}

static void say_level(FILE *say, const void *user)
{
    (void)user;
    fprintf(say, "%s", tn_cpu_level());
}

static void say_capability(FILE *say, const void *user)
{
    (void)user;
    fprintf(say, "%s", tn_cpu_capability());
}

static void say_features(FILE *say, const void *user)
{
    char features[512];
    (void)user;
    (void)tn_cpu_features(features, sizeof features);
    fprintf(say, "%s", strstr(features, "avx2") ? features : "no avx2");
}

static void say_threads(FILE *say, const void *user)
{
    (void)user;
    fprintf(say, "%d", (int)tn_parallel_threads());
}

static void count_thread(void *user, int64_t index)
{
    (void)index;
    atomic_fetch_add((_Atomic int *)user, 1);
}

static void say_loop(FILE *say, const void *user)
{
    _Atomic int count = 0;
    (void)user;
    tn_parallel_for(3, count_thread, &count);
    fprintf(say, "%d %d", atomic_load(&count), (int)tni_parallel_threads());
}

/* Whatever is asked first. */
static void what_the_process_has_one_of_is_in_force_at_once(void **state)
{
    static const char mask[] = "TENON_CPU_ISA_MASK=baseline";
    (void)state;
    assert_string_equal(ask_run(mask, NULL, say_level, NULL), "baseline");
    assert_string_equal(ask_run(mask, NULL, say_capability, NULL), "DEFAULT");
    assert_string_equal(ask_run(mask, NULL, say_features, NULL), "no avx2");
    assert_string_equal(ask_run("TENON_CPU_THREADS=5", NULL, say_threads, NULL), "5");
    assert_string_equal(ask_run("TENON_CPU_THREADS=5", NULL, say_loop, NULL), "3 5");
}

/* Also what the system gives only on request, and nobody has asked for yet. */
static void the_processors_own_level_is_followed(void **state)
{
    const char *own = tni_cpu_level();
    char variable[64], expected[128];
    (void)state;
    snprintf(variable, sizeof variable, "TENON_CPU_ISA_MASK=%s", own);
    snprintf(expected, sizeof expected, "cpu.isa_mask=%s [environment: TENON_CPU_ISA_MASK]\n", own);
    assert_string_equal(ask_with(variable, NULL), expected);
    assert_string_equal(ask_run(variable, NULL, say_level, NULL), own);
    assert_string_equal(ask_run(NULL, NULL, say_level, NULL), own);
}

static void rules_that_contradict_are_told(void **state)
{
    const char *said = ask_with("TENON_MKLDNN_ENABLED=0", "TENON_MATMUL_LIBRARY=require:mkldnn");
    (void)state;
    assert_contains(said, "mkldnn.enabled=false [environment: TENON_MKLDNN_ENABLED]\n"
                          "! TENON_MATMUL_LIBRARY: ");
    assert_contains(said, "forbid:library:mkldnn (mkldnn.enabled)");
    assert_contains(said, "require:matmul/library:mkldnn (matmul.library)");
}

static void note_line(void *user, int32_t level, const char *text)
{
    fprintf(user, "%d %s\n", level == TN_LOG_WARNING, text);
}

static void say_log(FILE *say, const void *user)
{
    const tn_log_sink sink = {
        .struct_size = sizeof sink, .write = note_line, .user = say, .level = TN_LOG_WARNING};
    (void)user;
    (void)tn_log_set(&sink, NULL);
    (void)tn_get_inference(NULL);
    (void)tn_get_inference(NULL);
    (void)tn_settings_problem(0);
}

static void problems_are_logged_once(void **state)
{
    (void)state;
    assert_string_equal(ask_run("TENON_INFERENCE=x", "TENON_WHO=1", say_log, NULL),
                        "1 settings: TENON_INFERENCE: inference cannot be \"x\"; allowed: true, "
                        "false\n1 settings: TENON_WHO: unknown variable\n");
}

/* The process's values go, what the environment said comes back, again and again. */
static void say_resets(FILE *say, const void *user)
{
    (void)user;
    for (int i = 0; i < 3; i++) {
        (void)tn_settings_set("tuning.limit=7", NULL);
        (void)tn_settings_set("matmul.library=avoid:mkl", NULL);
        fprintf(say, "%lld ", (long long)tn_get_tuning_limit(NULL));
        (void)tn_settings_reset(NULL, NULL);
        fprintf(say, "%lld %s; ", (long long)tn_get_tuning_limit(NULL),
                text_in(NULL, TN_SETTING_MATMUL_LIBRARY));
    }
}

static void a_reset_goes_back_to_what_was_read(void **state)
{
    (void)state;
    assert_string_equal(
        ask_run("TENON_TUNING_LIMIT=3", "TENON_MATMUL_LIBRARY=mkl", say_resets, NULL),
        "7 3 require:mkl; 7 3 require:mkl; 7 3 require:mkl; ");
}

/* Reads with the n-th allocation failing, then with all that there is. */
static void say_starved(FILE *say, const void *user)
{
    long n = *(const long *)user;
    fault_memory_install();
    fault_arm(&fault_memory, n, false, 0);
    int64_t limit = tn_get_tuning_limit(NULL);
    bool fired = fault_end(&fault_memory);
    fprintf(say, "%d %s", fired,
            limit == 10 || limit == 3 || limit == 5 ? "good" : "neither default nor set");
    if (!fired)
        fprintf(say, " %lld", (long long)limit);
}

static void want_of_memory_loses_values_and_no_more(void **state)
{
    const char *said = "1 good";
    (void)state;
    write_file(config_file, "tuning.limit = 3\nrules = forbid:mkl\nwrong = 1\n");
    for (long n = 1; strcmp(said, "0 good 5") != 0; n++) {
        said = ask_run(config_variable, "TENON_TUNING_LIMIT=5", say_starved, &n);
        assert_true(strcmp(said, "1 good") == 0 || strcmp(said, "0 good 5") == 0);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_by_its_variable),
        cmocka_unit_test(a_view_names_the_variable_that_was_set),
        cmocka_unit_test(the_order_of_the_environment_means_nothing),
        cmocka_unit_test(the_nearer_place_goes_before),
        cmocka_unit_test(bad_values_of_variables_are_told_and_ignored),
        cmocka_unit_test(strange_variables_are_told_with_the_nearest),
        cmocka_unit_test(a_level_that_is_not_here_is_told),
        cmocka_unit_test(what_the_process_has_one_of_is_in_force_at_once),
        cmocka_unit_test(the_processors_own_level_is_followed),
        cmocka_unit_test(rules_that_contradict_are_told),
        cmocka_unit_test(problems_are_logged_once),
        cmocka_unit_test(a_reset_goes_back_to_what_was_read),
        cmocka_unit_test(want_of_memory_loses_values_and_no_more),
    };
    return run_sources("unit.settings_sources", tests);
}
