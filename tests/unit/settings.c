/* The table of settings, walked by number: facts, defaults, every value as number and as text. No row
 * is named here that the table can tell. */
#include "settings_check.h"

#include "os/cpu_level.h"
#include "settings/views.h"

static bool is_number(tn_setting setting)
{
    return tni_setting_row_of(setting)->kind < TN_VALUE_ORDER;
}

/* Levels of instructions that this processor does not have are refused, whatever the table says. */
static bool is_possible(const tn_change *change)
{
    const tni_setting_row *row = tni_setting_row_of(change->setting);
    return change->setting != TN_SETTING_CPU_ISA_MASK || change->value == 0 ||
           tni_cpu_limit_check(row->words->words[change->value], NULL) == TN_OK;
}

static void upper_case(const char *key, char *out)
{
    for (; *key; key++)
        *out++ = (char)(*key == '.' ? '_' : *key >= 'a' && *key <= 'z' ? *key - 32 : *key);
    *out = '\0';
}

static void facts_are_whole(void **state)
{
    static const char *const kinds[] = {"bool", "int", "bytes", "word", "order", "rule", "rules"};
    char name[128] = "TENON_";
    (void)state;
    assert_null(tn_setting_info(-1));
    assert_null(tn_setting_info(TN_SETTING_COUNT));
    assert_null(tn_setting_info(INT32_MIN));
    assert_null(tn_setting_info(INT32_MAX));
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tn_setting_facts *facts = tn_setting_info(i);
        tn_setting found = -1;
        upper_case(facts->key, name + strlen("TENON_"));
        assert_int_equal(facts->struct_size, sizeof *facts);
        assert_string_equal(facts->environment, name);
        assert_string_equal(facts->kind, kinds[tni_setting_row_of(i)->kind]);
        assert_true(facts->allowed[0] && facts->effect[0] && facts->since[0]);
        assert_int_equal(facts->view, i >= TNI_FIRST_VIEW && i <= TNI_LAST_VIEW);
        assert_int_equal(tn_setting_get(facts->key, &found, NULL), TN_OK);
        assert_int_equal(found, i);
        assert_int_equal(tni_setting_of_variable(facts->environment), i);
        assert_int_equal(strspn(facts->key, "abcdefghijklmnopqrstuvwxyz0123456789._"),
                         strlen(facts->key));
        assert_null(strchr(facts->allowed, '\n'));
        assert_true(strlen(facts->allowed) < 180); /* not cut */
    }
}

static void defaults_are_as_the_facts_say(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        tn_origin origin = origin_in(NULL, i);
        assert_string_equal(text_in(NULL, i), row->facts.standard);
        assert_int_equal(tn_setting_value(NULL, i), is_number(i) ? row->standard : 0);
        assert_int_equal(origin.level, TN_LEVEL_DEFAULT);
        assert_string_equal(origin.text, "default");
        assert_int_equal(origin.from < TNI_FIRST_VIEW || origin.from > TNI_LAST_VIEW, 1);
        if (!row->facts.view)
            assert_int_equal(origin.from, i);
    }
}

/* Precision is never "none" once it is resolved; everything else is what it is. */
static void what_is_resolved_is_the_value(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char holds[ROW_TEXT];
        bool inherits = tni_precision_is(i) || i == TN_SETTING_CUDNN_FP32_PRECISION;
        (void)tn_setting_write_resolved(NULL, i, holds, sizeof holds);
        if (inherits) {
            assert_int_equal(tn_setting_value(NULL, i), TN_FP32_NONE);
            assert_int_not_equal(tn_setting_resolved(NULL, i), TN_FP32_NONE);
            assert_string_not_equal(holds, "none");
        } else {
            assert_int_equal(tn_setting_resolved(NULL, i), tn_setting_value(NULL, i));
            assert_string_equal(holds, text_in(NULL, i));
        }
    }
}

/* The change is in force, and its text says the same change again. */
static void check_taken(const tn_change *change, const char *text)
{
    char again[ROW_TEXT];
    if (is_number(change->setting))
        assert_int_equal(tn_setting_value(NULL, change->setting), change->value);
    else
        assert_int_equal(tn_setting_value(NULL, change->setting), 0);
    assert_string_equal(text_in(NULL, change->setting), text);
    snprintf(again, sizeof again, "%s=%s", key_of(change->setting), text);
    tn_change same = parsed(again);
    assert_int_equal(same.setting, change->setting);
    if (is_number(change->setting))
        assert_int_equal(same.value, change->value);
    reset(key_of(change->setting));
    assert_int_equal(tn_settings_change(&same, 1, NULL), TN_OK);
    assert_string_equal(text_in(NULL, change->setting), text);
}

static void set_and_read_back(const tn_change *change, const char *text, void *before)
{
    tn_error err = {0};
    tn_status status = tn_settings_change(change, 1, &err);
    if (!is_possible(change)) {
        assert_int_equal(status, TN_UNSUPPORTED);
        assert_contains(err.message, text);
        assert_all(NULL, before);
        return;
    }
    if (status)
        fail_msg("%s: %s", text, err.message);
    check_taken(change, text);
    tn_origin origin = origin_in(NULL, change->setting);
    assert_int_equal(origin.level, TN_LEVEL_PROCESS);
    reset(key_of(change->setting));
    assert_all(NULL, before);
}

static void every_value_is_set_and_read_back(void **state)
{
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        each_value(i, set_and_read_back, before);
}

/* Cuts the next line off a text. */
static const char *cut_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    assert_non_null(end);
    *end = '\0';
    *rest = end + 1;
    return line;
}

/* Nothing but the row, and what is seen through it, differs from what was before. */
static void check_only(tn_setting setting, char before[ALL_TEXT])
{
    char now[ALL_TEXT], *was_rest = before, *rest = now;
    tn_change rows[TNI_VIEW_MOST], change = {.setting = setting};
    bool precise = tni_precision_is(setting) || tni_setting_row_of(setting)->facts.view;
    size_t count = tni_change_rows(&change, rows);
    write_all(NULL, now);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        bool may = precise && (tni_setting_row_of(i)->facts.view || tni_precision_is(i));
        const char *was_line = cut_line(&was_rest), *line = cut_line(&rest);
        for (size_t j = 0; j < count; j++)
            may = may || rows[j].setting == i;
        if (!may)
            assert_string_equal(line, was_line);
    }
}

static void a_change_leaves_the_other_rows(void **state)
{
    char before[ALL_TEXT], copy[ALL_TEXT], text[ROW_TEXT];
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        set(text);
        assert_string_equal(text_in(NULL, i), other_value(i));
        memcpy(copy, before, sizeof copy);
        check_only(i, copy);
        reset(key_of(i));
        assert_all(NULL, before);
    }
}

#define NUMBER_PAIR(type, NAME, name)                                  \
    static void pair_##name(int64_t value)                             \
    {                                                                  \
        tn_change change = tn_with_##name((type)value);                \
        tn_context *context = NULL;                                    \
        assert_int_equal(change.setting, TN_SETTING_##NAME);           \
        assert_int_equal(change.value, value);                         \
        assert_int_equal(change.strength, 0);                          \
        assert_null(change.text);                                      \
        assert_int_equal(tn_settings_change(&change, 1, NULL), TN_OK); \
        assert_int_equal(tn_context_capture(&context, NULL), TN_OK);   \
        assert_int_equal(tn_get_##name(NULL), value);                  \
        reset(key_of(TN_SETTING_##NAME));                              \
        assert_int_equal(tn_get_##name(context), value);               \
        tn_context_release(context);                                   \
    }
#define RULE_PAIR(NAME, name)                                   \
    static void pair_##name(int64_t value)                      \
    {                                                           \
        tn_change change = tn_with_##name((int32_t)value, "x"); \
        assert_int_equal(change.setting, TN_SETTING_##NAME);    \
        assert_int_equal(change.strength, value);               \
        assert_string_equal(change.text, "x");                  \
    }
#define PAIR_BOOL(NAME, name)      NUMBER_PAIR(int32_t, NAME, name)
#define PAIR_INT(NAME, name)       NUMBER_PAIR(int64_t, NAME, name)
#define PAIR_BYTES(NAME, name)     NUMBER_PAIR(int64_t, NAME, name)
#define PAIR_WORD(NAME, name)      NUMBER_PAIR(int32_t, NAME, name)
#define PAIR_VIEW_BOOL(NAME, name) NUMBER_PAIR(int32_t, NAME, name)
#define PAIR_VIEW_WORD(NAME, name) NUMBER_PAIR(int32_t, NAME, name)
#define PAIR_RULE(NAME, name)      RULE_PAIR(NAME, name)
#define PAIR_RULES(NAME, name)     RULE_PAIR(NAME, name)
#define PAIR_ORDER(NAME, name)                               \
    static void pair_##name(int64_t value)                   \
    {                                                        \
        tn_change change = tn_with_##name("math");           \
        (void)value;                                         \
        assert_int_equal(change.setting, TN_SETTING_##NAME); \
        assert_string_equal(change.text, "math");            \
    }
#define PAIR(kind, NAME, name, key, words, standard, least, most, since, effect) \
    PAIR_##kind(NAME, name)
TN_SETTING_LIST(PAIR)
#undef PAIR

/* Both functions of every row, the greatest number of INT and BYTES unharmed. */
static void typed_functions_are_of_their_rows(void **state)
{
    static void (*const pairs[])(int64_t) = {
#define PAIR(kind, NAME, name, key, words, standard, least, most, since, effect) pair_##name,
        TN_SETTING_LIST(PAIR)
#undef PAIR
    };
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tni_setting_row *row = tni_setting_row_of(i);
        bool counts = row->kind == TN_VALUE_INT || row->kind == TN_VALUE_BYTES;
        pairs[i](counts ? row->most : 1);
        pairs[i](0);
    }
    tn_change rule = tn_with_rule(TN_FORBID, "library:x");
    assert_int_equal(rule.setting, TN_SETTING_RULES);
    assert_int_equal(rule.strength, TN_FORBID);
}

static void texts_are_cut_to_their_room(void **state)
{
    char out[ROW_TEXT + 1];
    (void)state;
    set("rules=forbid:library:cudnn, prefer:matmul/library:mkl");
    set("matmul.library=prefer:mkl, openblas");
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const char *whole = text_in(NULL, i);
        size_t length = strlen(whole);
        assert_int_equal(tn_setting_write(NULL, i, NULL, 0), length);
        assert_int_equal(tn_setting_write(NULL, i, NULL, 99), length);
        for (size_t size = 1; size <= length + 1; size++) {
            memset(out, '!', sizeof out);
            assert_int_equal(tn_setting_write(NULL, i, out, size), length);
            assert_int_equal(strlen(out), size - 1);
            assert_memory_equal(out, whole, size - 1);
            assert_int_equal(out[size], '!');
        }
    }
    memset(out, '!', sizeof out);
    assert_int_equal(tn_setting_write(NULL, TN_SETTING_COUNT, out, 9), 0);
    assert_string_equal(out, "");
    assert_int_equal(tn_setting_value(NULL, -1), 0);
    assert_int_equal(tn_setting_value(NULL, TN_SETTING_COUNT), 0);
    assert_int_equal(tn_setting_resolved(NULL, TN_SETTING_COUNT), 0);
    assert_int_equal(tn_setting_resolved(NULL, -1), 0);
    reset(NULL);
}

static void other_spellings_mean_the_same(void **state)
{
    static const struct {
        const char *text, *value;
    } rows[] = {
        {"cudnn.benchmark=1", "true"},
        {"cudnn.benchmark=ON", "true"},
        {"cudnn.benchmark=yes", "true"},
        {"cudnn.benchmark=True", "true"},
        {"cudnn.enabled=0", "false"},
        {"cudnn.enabled=off", "false"},
        {"cudnn.enabled=No", "false"},
        {"  cudnn.enabled \t= \tFALSE \t", "false"},
        {"fp32_precision= IEEE ", "ieee"},
        {"cuda.preferred_blas_library=HIPBLAS", "cublas"},
        {"cuda.preferred_blas_library=hipblaslt", "cublaslt"},
        {"cuda.preferred_linalg_library=hipsolver", "cusolver"},
        {"mkldnn.verbose=2", "creation"},
        {"mkldnn.verbose=0", "off"},
        {"mkl.verbose=1", "on"},
        {"workspace.limit=1024", "1k"},
        {"workspace.limit=1K", "1k"},
        {"workspace.limit=0064m ", "64m"},
        {"workspace.limit=2048G", "2t"},
        {"workspace.limit=0", "0"},
        {"workspace.limit=None", "none"},
        {"cpu.threads=auto", "auto"},
        {"cpu.threads=0", "auto"},
        {"debug.sample=off", "off"},
        {"matmul.library=mkl", "require:mkl"},
        {"matmul.library=Prefer:MKL", "prefer:mkl"},
        {"matmul.library=permit:*", "any"},
        {"attention.backend=FLASH_ATTN", "require:flash_attn"},
        {"rules= FORBID:Library:cudnn , forbid:library:cudnn", "forbid:library:cudnn"},
        {"cuda.sdp_priority=MATH", "math, flash, mem_efficient, cudnn, overrideable"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_change change = parsed(rows[i].text);
        assert_int_equal(tn_settings_change(&change, 1, NULL), TN_OK);
        assert_string_equal(text_in(NULL, change.setting), rows[i].value);
        reset(NULL);
    }
}

static void names_of_levels_and_strengths(void **state)
{
    static const char *const levels[] = {"default", "file",  "environment",
                                         "process", "scope", "call"};
    static const char *const strengths[] = {"permit", "require", "prefer", "avoid", "forbid"};
    (void)state;
    for (int32_t i = 0; i < 6; i++)
        assert_string_equal(tn_level_name(i), levels[i]);
    for (int32_t i = 0; i < 5; i++)
        assert_string_equal(tn_strength_name(i), strengths[i]);
    assert_string_equal(tn_level_name(-1), "unknown");
    assert_string_equal(tn_level_name(6), "unknown");
    assert_string_equal(tn_strength_name(-1), "unknown");
    assert_string_equal(tn_strength_name(5), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_whole),
        cmocka_unit_test(defaults_are_as_the_facts_say),
        cmocka_unit_test(what_is_resolved_is_the_value),
        cmocka_unit_test(every_value_is_set_and_read_back),
        cmocka_unit_test(a_change_leaves_the_other_rows),
        cmocka_unit_test(typed_functions_are_of_their_rows),
        cmocka_unit_test(texts_are_cut_to_their_room),
        cmocka_unit_test(other_spellings_mean_the_same),
        cmocka_unit_test(names_of_levels_and_strengths),
    };
    forget_settings();
    return run_suite("unit.settings", tests);
}
