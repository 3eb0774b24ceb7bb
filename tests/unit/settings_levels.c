/* Levels of settings: the nearer one holds, says where it is from, and is taken back; what the process
 * has one of; what ends with a freeze. */
#include "settings_check.h"

#include "os/thread.h"
#include "settings/views.h"

#if !defined(_WIN32)
#include <sched.h>
#endif

static void assert_level(const tn_context *context, tn_setting setting, int32_t level,
                         const char *value)
{
    tn_origin origin = origin_in(context, setting);
    tn_change rows[TNI_VIEW_MOST], change = {.setting = setting, .value = 1};
    char words[300];
    size_t count = tni_change_rows(&change, rows);
    bool own = false;
    assert_string_equal(text_in(context, setting), value);
    assert_int_equal(origin.level, level);
    for (size_t i = 0; i < count; i++)
        own = own || origin.from == rows[i].setting;
    assert_true(own);
    snprintf(words, sizeof words, "%s%s%s", tn_level_name(level),
             origin.from == setting ? "" : ", through ",
             origin.from == setting ? "" : key_of(origin.from));
    assert_string_equal(origin.text, words);
}

/* A third value, which every row has but those of two. */
static const char *third_value(tn_setting setting)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    switch (row->kind) {
    case TN_VALUE_BOOL: return row->facts.standard;
    case TN_VALUE_INT: return "9";
    case TN_VALUE_BYTES: return "9k";
    case TN_VALUE_WORD: return row->words->words[row->words->settable > 2 ? 2 : 0];
    case TN_VALUE_ORDER: return "cudnn, math, flash, mem_efficient, overrideable";
    case TN_VALUE_RULE: return "avoid:mkl";
    default: return "prefer:library:mkl";
    }
}

/* The list of rules is what all levels say, the nearest first. */
static void join_lists(tn_setting setting, const char *near, const char *far, char *out)
{
    bool list = tni_setting_row_of(setting)->kind == TN_VALUE_RULES;
    snprintf(out, ROW_TEXT, "%.4000s%s%.4000s", near, list ? ", " : "", list ? far : "");
}

static void levels_go_over_one_another(tn_setting setting)
{
    char one[ROW_TEXT], two[ROW_TEXT], inner[ROW_TEXT], call[ROW_TEXT];
    tn_scope scope = {0};
    snprintf(one, sizeof one, "%s=%s", key_of(setting), other_value(setting));
    snprintf(two, sizeof two, "%s=%s", key_of(setting), third_value(setting));
    join_lists(setting, third_value(setting), other_value(setting), inner);
    join_lists(setting, other_value(setting), inner, call);
    set(one);
    assert_level(NULL, setting, TN_LEVEL_PROCESS, other_value(setting));
    tn_context *process = captured();
    enter(&scope, two);
    assert_level(NULL, setting, TN_LEVEL_SCOPE, inner);
    tn_context *context = derived(NULL, one);
    assert_level(context, setting, TN_LEVEL_CALL, call);
    assert_level(NULL, setting, TN_LEVEL_SCOPE, inner);
    assert_level(process, setting, TN_LEVEL_PROCESS, other_value(setting));
    reset(key_of(setting));
    assert_level(NULL, setting, TN_LEVEL_SCOPE, third_value(setting));
    assert_level(context, setting, TN_LEVEL_CALL, call);
    tn_scope_leave(&scope);
    assert_level(context, setting, TN_LEVEL_CALL, call);
    assert_level(process, setting, TN_LEVEL_PROCESS, other_value(setting));
    tn_context_release(context);
    tn_context_release(process);
}

static void the_nearer_level_holds_and_is_taken_back(void **state)
{
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (!tn_setting_info(i)->process_only)
            levels_go_over_one_another(i);
        assert_all(NULL, before);
    }
}

static void what_the_process_has_one_of_is_its_own(void **state)
{
    char before[ALL_TEXT], text[ROW_TEXT];
    size_t found = 0;
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        tn_scope scope = {0};
        tn_context *context = NULL;
        tn_error err = {0};
        if (!tn_setting_info(i)->process_only)
            continue;
        found++;
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        const tn_change change = parsed(text);
        assert_int_equal(tn_scope_enter(&scope, &change, 1, &err), TN_UNSUPPORTED);
        assert_contains(err.message, "is set for the whole process; a scope cannot change it");
        assert_contains(err.message, key_of(i));
        assert_int_equal(tn_context_derive(NULL, &change, 1, &context, &err), TN_UNSUPPORTED);
        assert_contains(err.message, "a call cannot change it");
        assert_null(context);
        assert_null(scope.inside);
    }
    assert_int_equal(found, 3); /* cpu.threads, cpu.isa_mask and cpu.pool */
    assert_all(NULL, before);
}

static void one_reset_is_of_one_row(void **state)
{
    char before[ALL_TEXT], text[ROW_TEXT];
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (tn_setting_info(i)->view)
            continue;
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        set(text);
    }
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (tn_setting_info(i)->view)
            continue;
        assert_string_equal(text_in(NULL, i), other_value(i));
        reset(key_of(i));
        assert_string_equal(text_in(NULL, i), tn_setting_info(i)->standard);
        reset(key_of(i)); /* again does nothing */
    }
    assert_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        set(text);
    }
    reset(NULL);
    assert_all(NULL, before);
}

/* A scope's text is its own: the caller's may be gone when the process's settings change. */
static void texts_need_not_outlive_the_call(void **state)
{
    tn_scope scope = {0};
    char *name = strdup("mkl, openblas"), *order = strdup("math");
    (void)state;
    const tn_change changes[] = {tn_with_matmul_library(TN_PREFER, name),
                                 tn_with_cuda_sdp_priority(order)};
    assert_int_equal(tn_scope_enter(&scope, changes, 2, NULL), TN_OK);
    memset(name, 'x', strlen(name));
    memset(order, 'x', strlen(order));
    free(name);
    free(order);
    set("inference=1");
    assert_string_equal(text_in(NULL, TN_SETTING_MATMUL_LIBRARY), "prefer:mkl, openblas");
    assert_contains(text_in(NULL, TN_SETTING_CUDA_SDP_PRIORITY), "math, flash");
    tn_scope_leave(&scope);
    reset(NULL);
}

/* Loops and settings wait for one another's threads: those of a pool that read settings end while
 * the process's settings change. */
static void read_inside(void *user, int64_t index)
{
    (void)user;
    (void)index;
    (void)tn_get_inference(NULL);
}

static void threads_that_read_may_end_with_a_change(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        assert_int_equal(tn_parallel_threads_set(4, NULL), TN_OK);
        tn_parallel_for(64, read_inside, NULL);
        set("cpu.threads=2");
        tn_parallel_for(64, read_inside, NULL);
        assert_int_equal(tn_parallel_threads(), 2);
        reset(NULL);
    }
}

static void change_inside(void *user, int64_t index)
{
    tn_status *out = user;
    if (index == 0) {
        out[0] = tn_settings_set("cpu.threads=3", NULL);
        out[1] = tn_settings_set("inference=1", NULL);
        out[2] = tn_settings_reset(NULL, NULL);
    }
}

static void a_loop_keeps_its_threads(void **state)
{
    tn_status status[3] = {-1, -1, -1};
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    tn_parallel_for(2, change_inside, status);
    assert_int_equal(status[0], TN_BUSY);
    assert_int_equal(status[1], TN_OK);
    assert_int_equal(status[2], TN_OK);
    assert_all(NULL, before);
}

/* A reader that was halfway when the settings changed: it has announced what it will count. */
static void what_a_reader_is_about_to_count_stays(void **state)
{
    tni_reader reader = {.sees = NULL};
    (void)state;
    tni_reader_add(&reader);
    set("tuning.limit=3");
    tn_context *seen = captured();
    atomic_store(&reader.sees, seen);
    tn_context_release(seen);
    set("tuning.limit=4");
    assert_int_equal(tn_get_tuning_limit(NULL), 4); /* this thread has let go of it, too */
    int64_t blocks = tn_allocator_blocks();
    set("tuning.limit=5");
    assert_int_equal(tn_get_tuning_limit(seen), 3);
    atomic_store(&reader.sees, NULL);
    set("tuning.limit=6");
    assert_int_equal(tn_get_tuning_limit(NULL), 6);
    assert_int_equal(tn_allocator_blocks(), blocks - 1);
    reset(NULL);
    tni_reader_remove(&reader);
}

/* What was read is published again and again, also while a reader is about to count it. */
static void what_was_read_is_published_again(void **state)
{
    tni_reader reader = {.sees = tni_settings_sources()->context};
    (void)state;
    tni_reader_add(&reader);
    for (int i = 0; i < 3; i++) {
        set("tuning.limit=3");
        reset(NULL);
    }
    set("tuning.limit=3");
    atomic_store(&reader.sees, NULL);
    reset(NULL);
    assert_int_equal(tn_get_tuning_limit(NULL), 10);
    tni_reader_remove(&reader);
}

#if !defined(_WIN32)

static void say_free(FILE *say, const void *user)
{
    (void)user;
    fprintf(say, "%s ", tn_status_name(tn_settings_set("tuning.limit=3", NULL)));
    fprintf(say, "%lld", (long long)tn_get_tuning_limit(NULL));
}

/* 1: the lock is held, 2: it may be let go. */
static void hold_lock(void *user)
{
    _Atomic int *step = user;
    tni_settings_lock();
    atomic_store(step, 1);
    while (atomic_load(step) != 2)
        (void)sched_yield();
    tni_settings_unlock();
}

/* Another thread has just begun to read, or ends. */
static void a_child_has_its_own_lock(void **state)
{
    _Atomic int step = 0;
    tni_thread other;
    (void)state;
    assert_int_equal(tni_thread_create(&other, hold_lock, &step, NULL), TN_OK);
    while (atomic_load(&step) != 1)
        (void)sched_yield();
    const char *said = child_says(say_free, NULL);
    atomic_store(&step, 2);
    tni_thread_join(other);
    assert_string_equal(said, "ok 3");
    assert_int_equal(tn_get_tuning_limit(NULL), 10);
}

/* One line for each way to change something: its status and whether all is as it was. */
static void say_try(FILE *say, const char *name, tn_status status, const tn_error *err,
                    const char *before)
{
    char now[ALL_TEXT];
    write_all(NULL, now);
    fprintf(say, "%s: %s, %s%s\n", name, tn_status_name(status),
            strcmp(now, before) == 0 ? "as before" : "changed",
            strstr(err->message, "tn_settings_freeze") ? "" : ", no word of the freeze");
}

static void say_frozen(FILE *say, const void *user)
{
    static char before[ALL_TEXT];
    tn_error err = {0};
    const tn_change change = tn_with_inference(1);
    tn_scope scope = {0};
    (void)user;
    (void)tn_settings_set("tuning.limit=3", NULL);
    write_all(NULL, before);
    fprintf(say, "frozen: %d\n", (int)tn_settings_frozen());
    tn_settings_freeze();
    tn_settings_freeze();
    fprintf(say, "frozen: %d\n", (int)tn_settings_frozen());
    say_try(say, "change", tn_settings_change(&change, 1, &err), &err, before);
    say_try(say, "set", tn_settings_set("inference=1", &err), &err, before);
    say_try(say, "reset", tn_settings_reset("tuning.limit", &err), &err, before);
    say_try(say, "reset all", tn_settings_reset(NULL, &err), &err, before);
    say_try(say, "threads", tn_parallel_threads_set(2, &err), &err, before);
    say_try(say, "no threads", tn_parallel_threads_set(0, &err), &err, before);
    say_try(say, "limit", tn_cpu_limit("baseline", &err), &err, before);
    say_try(say, "no limit", tn_cpu_limit(NULL, &err), &err, before);
    fprintf(say, "scope: %s", tn_status_name(tn_scope_enter(&scope, &change, 1, &err)));
    fprintf(say, " %d\n", (int)tn_get_inference(NULL));
    tn_scope_leave(&scope);
    fprintf(say, "left: %d\n", (int)tn_get_inference(NULL));
}

static void a_freeze_covers_everything_that_sets(void **state)
{
    (void)state;
    assert_string_equal(child_says(say_frozen, NULL), "frozen: 0\n"
                                                      "frozen: 1\n"
                                                      "change: refused, as before\n"
                                                      "set: refused, as before\n"
                                                      "reset: refused, as before\n"
                                                      "reset all: refused, as before\n"
                                                      "threads: refused, as before\n"
                                                      "no threads: refused, as before\n"
                                                      "limit: refused, as before\n"
                                                      "no limit: refused, as before\n"
                                                      "scope: ok 1\n"
                                                      "left: 0\n");
    assert_int_equal(tn_settings_frozen(), 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearer_level_holds_and_is_taken_back),
        cmocka_unit_test(what_the_process_has_one_of_is_its_own),
        cmocka_unit_test(one_reset_is_of_one_row),
        cmocka_unit_test(texts_need_not_outlive_the_call),
        cmocka_unit_test(threads_that_read_may_end_with_a_change),
        cmocka_unit_test(a_loop_keeps_its_threads),
        cmocka_unit_test(what_a_reader_is_about_to_count_stays),
        cmocka_unit_test(what_was_read_is_published_again),
#if !defined(_WIN32)
        cmocka_unit_test(a_child_has_its_own_lock),
        cmocka_unit_test(a_freeze_covers_everything_that_sets),
#endif
    };
    forget_settings();
    return run_suite("unit.settings_levels", tests);
}
