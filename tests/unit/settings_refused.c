/* What no row takes, walked by number: every kind of bad value is refused with its code and its words,
 * by whatever way it comes, and nothing has changed. */
#include "settings_check.h"

static bool is_number(tn_setting setting)
{
    return tni_setting_row_of(setting)->kind < TN_VALUE_ORDER;
}

/* Whichever way it is tried, it is refused with the code and these words, and nothing has changed. */
static void check_refused(const tn_change *change, tn_status code, const char *words)
{
    char before[ALL_TEXT];
    tn_scope scope = {0};
    tn_context *context = NULL;
    tn_error err = {0};
    write_all(NULL, before);
    assert_int_equal(tn_settings_change(change, 1, &err), code);
    assert_int_equal(err.status, code);
    assert_contains(err.message, words);
    assert_int_equal(tn_scope_enter(&scope, change, 1, &err), code);
    assert_contains(err.message, words);
    assert_null(scope.inside);
    tn_scope_leave(&scope);
    assert_int_equal(tn_context_derive(NULL, change, 1, &context, &err), code);
    assert_contains(err.message, words);
    assert_null(context);
    const tn_change both[] = {tn_with_inference(1), *change};
    assert_int_equal(tn_settings_change(both, 2, &err), code);
    assert_int_equal(tn_settings_change(change, 1, NULL), code);
    assert_all(NULL, before);
}

static void check_text_refused(tn_setting setting, const char *value, const char *words)
{
    char before[ALL_TEXT], text[ROW_TEXT];
    tn_change change = {.setting = -5, .text = before};
    tn_error err = {0};
    write_all(NULL, before);
    snprintf(text, sizeof text, "%s=%s", key_of(setting), value);
    assert_int_equal(tn_setting_parse(text, &change, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, words);
    assert_null(strchr(err.message, '\n'));
    assert_int_equal(change.setting, -5);
    assert_int_equal(tn_settings_set(text, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, words);
    assert_int_equal(tn_settings_set(text, NULL), TN_INVALID_ARGUMENT);
    assert_all(NULL, before);
}

static void texts_that_no_value_has_are_refused(void **state)
{
    char huge[6000];
    (void)state;
    memset(huge, 'a', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        const char *allowed = row->facts.allowed;
        check_text_refused(i, huge, row->facts.key);
        if (row->kind != TN_VALUE_RULES)
            check_text_refused(i, "", allowed);
        if (row->kind == TN_VALUE_RULE || row->kind == TN_VALUE_RULES)
            continue;
        check_text_refused(i, "not-at-all-a-value", allowed);
        check_text_refused(i, " ", allowed);
        check_text_refused(i, "-1", allowed);
        check_text_refused(i, "-9223372036854775808", allowed);
        check_text_refused(i, "9223372036854775808", allowed);
        check_text_refused(i, "18446744073709551616", allowed);
        check_text_refused(i, "0x10", allowed);
        check_text_refused(i, "1.5", allowed);
        check_text_refused(i, "1 k", allowed);
        check_text_refused(i, "8388608t", allowed);
        check_text_refused(i, "1q", allowed);
        if (row->kind != TN_VALUE_BYTES)
            check_text_refused(i, "1k", allowed);
    }
}

static void the_nearest_word_is_named(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        char wrong[64], hint[96];
        if (row->kind == TN_VALUE_BOOL) {
            check_text_refused(i, "ture", "; did you mean true?");
            check_text_refused(i, "fasle", "; did you mean false?");
        }
        if ((row->kind == TN_VALUE_INT || row->kind == TN_VALUE_BYTES) && row->word) {
            snprintf(wrong, sizeof wrong, "%sx", row->word);
            snprintf(hint, sizeof hint, "; did you mean %s?", row->word);
            check_text_refused(i, wrong, hint);
        }
        for (size_t j = 0; row->words && j < row->words->settable; j++) {
            snprintf(wrong, sizeof wrong, "%szz", row->words->words[j]);
            snprintf(hint, sizeof hint, "; did you mean %s?", row->words->words[j]);
            if (strlen(row->words->words[j]) > 3)
                check_text_refused(i, wrong, hint);
        }
    }
    check_text_refused(TN_SETTING_FLOAT32_MATMUL_PRECISION, "mixed", "highest, high, medium");
    check_text_refused(TN_SETTING_CUDA_SDP_PRIORITY, "flash, flash", "duplicate \"flash\"");
    check_text_refused(TN_SETTING_CUDA_SDP_PRIORITY, "flash, Flash", "duplicate \"Flash\"");
    check_text_refused(TN_SETTING_MATMUL_LIBRARY, "perfer:mkl", "; did you mean prefer?");
    check_text_refused(TN_SETTING_MATMUL_LIBRARY, "prefer:", "any, or [strength:]name");
    check_text_refused(TN_SETTING_MATMUL_LIBRARY, "any, mkl", "any, or [strength:]name");
    check_text_refused(TN_SETTING_MATMUL_LIBRARY, "prefer:any", "any, or [strength:]name");
    check_text_refused(TN_SETTING_MATMUL_LIBRARY, "prefer:m kl", "\"matmul/library:m kl\"");
    check_text_refused(TN_SETTING_RULES, "forbid", "does not begin with require:");
    check_text_refused(TN_SETTING_RULES, "forbids:mkl", "; did you mean forbid?");
    check_text_refused(TN_SETTING_RULES, "forbid:", "has no name");
    check_text_refused(TN_SETTING_RULES, "forbid:libary:mkl", "; did you mean library?");
}

static void check_number_refused(tn_setting setting, int64_t value)
{
    tn_change change = {.setting = setting, .value = value};
    const tni_setting_row *row = tni_setting_row_of(setting);
    char number[32];
    snprintf(number, sizeof number, "\"%lld\"", (long long)value);
    check_refused(&change, TN_INVALID_ARGUMENT, number);
    check_refused(&change, TN_INVALID_ARGUMENT, row->facts.key);
    check_refused(&change, TN_INVALID_ARGUMENT, row->facts.allowed);
}

static void numbers_past_either_end_are_refused(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        if (!is_number(i))
            continue;
        int64_t most = row->kind == TN_VALUE_WORD ? (int64_t)row->words->settable - 1 : row->most;
        int64_t least = row->kind == TN_VALUE_WORD ? 0 : row->least;
        check_number_refused(i, INT64_MIN);
        check_number_refused(i, row->standard < least ? row->standard - 1 : least - 1);
        if (most < INT64_MAX) {
            check_number_refused(i, most + 1);
            check_number_refused(i, INT64_MAX);
        }
    }
}

static void texts_and_strengths_are_checked_in_changes_too(void **state)
{
    char huge[6000];
    (void)state;
    memset(huge, 'a', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        tn_change change = {.setting = i, .strength = TN_REQUIRE, .text = NULL};
        if (is_number(i))
            continue;
        check_refused(&change, TN_INVALID_ARGUMENT, "the text is NULL");
        change.text = huge;
        check_refused(&change, TN_INVALID_ARGUMENT, row->facts.key);
        change.text = "";
        check_refused(&change, TN_INVALID_ARGUMENT, "");
        change.text = "a b";
        check_refused(&change, TN_INVALID_ARGUMENT, "");
        change.text = "mkl";
        change.strength = TN_FORBID + 1;
        if (row->kind == TN_VALUE_ORDER)
            continue;
        check_refused(&change, TN_INVALID_ARGUMENT,
                      "expected a strength of 0 (permit) to 4 (forbid)");
        change.strength = row->kind == TN_VALUE_RULES ? -2 : -1;
        check_refused(&change, TN_INVALID_ARGUMENT, "expected a strength");
    }
}

static void no_row_means_nothing(void **state)
{
    static const tn_setting numbers[] = {-1, TN_SETTING_COUNT, INT32_MIN, INT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        tn_change change = {.setting = numbers[i], .value = 1, .text = "x"};
        tn_origin origin = {.struct_size = sizeof origin, .level = -7};
        tn_error err = {0};
        check_refused(&change, TN_INVALID_ARGUMENT, "unknown setting number");
        assert_int_equal(tn_setting_origin(NULL, numbers[i], &origin, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, "unknown setting number");
        assert_int_equal(origin.level, -7);
        assert_null(tn_setting_reader(numbers[i], 0));
    }
}

static void unknown_keys_are_refused_with_the_nearest(void **state)
{
    char wrong[128], hint[128], before[ALL_TEXT], huge[2000];
    tn_setting found = -7;
    tn_change change = {.setting = -7};
    tn_error err = {0};
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        snprintf(wrong, sizeof wrong, "x%s", key_of(i));
        snprintf(hint, sizeof hint, "; did you mean %s?", key_of(i));
        assert_int_equal(tn_setting_get(wrong, &found, &err), TN_NOT_FOUND);
        assert_contains(err.message, wrong);
        assert_contains(err.message, hint);
        assert_int_equal(tn_settings_reset(wrong, &err), TN_NOT_FOUND);
        assert_contains(err.message, hint);
        strncat(wrong, "=1", 3);
        assert_int_equal(tn_setting_parse(wrong, &change, &err), TN_NOT_FOUND);
        assert_contains(err.message, hint);
        assert_int_equal(tn_settings_set(wrong, &err), TN_NOT_FOUND);
        assert_contains(err.message, hint);
    }
    memset(huge, 'k', sizeof huge);
    memcpy(huge + sizeof huge - 3, "=1", 3);
    assert_int_equal(tn_setting_parse(huge, &change, &err), TN_NOT_FOUND);
    assert_int_equal(tn_setting_parse("", &change, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "expected key=value");
    assert_int_equal(tn_setting_parse("inference", &change, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "expected key=value, got \"inference\"");
    assert_int_equal(tn_setting_parse("=1", &change, &err), TN_NOT_FOUND);
    assert_int_equal(tn_setting_parse("Inference=1", &change, &err), TN_NOT_FOUND);
    assert_contains(err.message, "did you mean inference?");
    assert_int_equal(found, -7);
    assert_int_equal(change.setting, -7);
    assert_all(NULL, before);
}

static void null_arguments_are_refused(void **state)
{
    char before[ALL_TEXT];
    tn_setting found;
    tn_change change;
    tn_error err = {0};
    (void)state;
    write_all(NULL, before);
    assert_int_equal(tn_setting_get(NULL, &found, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_setting_get("inference", NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_setting_parse(NULL, &change, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_setting_parse("inference=1", NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_settings_set(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_settings_save(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_settings_change(NULL, 2, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "changes is NULL, but count is 2");
    assert_int_equal(tn_context_derive(NULL, NULL, 1, &(tn_context *){NULL}, &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(tn_context_derive(NULL, NULL, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_context_capture(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_scope_enter(NULL, NULL, 0, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_scope_enter_context(&(tn_scope){0}, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_scope_enter_context(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_setting_origin(NULL, 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_settings_change(NULL, 0, &err), TN_OK);
    tn_scope_leave(NULL);
    tn_context_release(NULL);
    assert_null(tn_context_retain(NULL));
    assert_all(NULL, before);
}

static void an_origin_needs_room(void **state)
{
    tn_origin origin = {.struct_size = TN_UP_TO(tn_origin, text) - 1, .level = -7};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_setting_origin(NULL, 0, &origin, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "struct_size");
    assert_int_equal(origin.level, -7);
    origin.struct_size = TN_UP_TO(tn_origin, text);
    assert_int_equal(tn_setting_origin(NULL, 0, &origin, &err), TN_OK);
    assert_int_equal(origin.level, TN_LEVEL_DEFAULT);
}

static void of_several_changes_all_are_made_or_none(void **state)
{
    char before[ALL_TEXT];
    tn_error err = {0};
    (void)state;
    write_all(NULL, before);
    for (size_t bad = 0; bad < 4; bad++) {
        tn_change changes[] = {tn_with_inference(1), tn_with_tuning_limit(3),
                               tn_with_matmul_library(TN_PREFER, "mkl"), tn_with_cudnn_enabled(0)};
        changes[bad] = tn_with_tuning_limit(-1);
        assert_int_equal(tn_settings_change(changes, 4, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, "tuning.limit cannot be \"-1\"; allowed: 0 to 10000");
        assert_all(NULL, before);
    }
    const tn_change twice[] = {tn_with_tuning_limit(3), tn_with_tuning_limit(4),
                               tn_with_matmul_library(TN_PREFER, "mkl"),
                               tn_with_matmul_library(TN_AVOID, "openblas")};
    assert_int_equal(tn_settings_change(twice, 4, &err), TN_OK);
    assert_int_equal(tn_get_tuning_limit(NULL), 4);
    assert_string_equal(text_in(NULL, TN_SETTING_MATMUL_LIBRARY), "avoid:openblas");
    reset(NULL);
    assert_all(NULL, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_no_value_has_are_refused),
        cmocka_unit_test(the_nearest_word_is_named),
        cmocka_unit_test(numbers_past_either_end_are_refused),
        cmocka_unit_test(texts_and_strengths_are_checked_in_changes_too),
        cmocka_unit_test(no_row_means_nothing),
        cmocka_unit_test(unknown_keys_are_refused_with_the_nearest),
        cmocka_unit_test(null_arguments_are_refused),
        cmocka_unit_test(an_origin_needs_room),
        cmocka_unit_test(of_several_changes_all_are_made_or_none),
    };
    forget_settings();
    return run_suite("unit.settings_refused", tests);
}
