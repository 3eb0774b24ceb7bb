/* What the suites about settings share: all rows as one text, changes that must be taken, every value
 * that a row has, and children. */
#ifndef TENON_TEST_SETTINGS_CHECK_H
#define TENON_TEST_SETTINGS_CHECK_H

#include "test.h"

#include "settings/process.h"
#include "settings/table.h"
#include "tenon/tenon.h"

#if !defined(_WIN32)
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { ALL_TEXT = 32768, ROW_TEXT = 8192 };

/* Before anything of the library is used: whoever runs the tests has settings of their own. */
static inline void forget_settings(void)
{
#if !defined(_WIN32)
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        (void)unsetenv(tn_setting_info(i)->environment);
    (void)setenv("TENON_CONFIG", "", 1);
#endif
}

static inline const char *key_of(tn_setting setting)
{
    return tn_setting_info(setting)->key;
}

/* The value's text; lent until the next call but three. */
static inline const char *text_in(const tn_context *context, tn_setting setting)
{
    static _Thread_local char rooms[4][ROW_TEXT];
    static _Thread_local unsigned turn;
    char *room = rooms[turn++ % 4];
    if (tn_setting_write(context, setting, room, ROW_TEXT) >= ROW_TEXT)
        fail_msg("%s: its text is too long", key_of(setting));
    return room;
}

static inline tn_origin origin_in(const tn_context *context, tn_setting setting)
{
    tn_origin origin = {.struct_size = sizeof origin, .level = -7, .from = -7};
    tn_error err = {0};
    if (tn_setting_origin(context, setting, &origin, &err))
        fail_msg("%s: %s", key_of(setting), err.message);
    return origin;
}

/* Every row: its value, the one that holds, where from. Equal texts are equal contexts. */
static inline void write_all(const tn_context *context, char out[ALL_TEXT])
{
    size_t used = 0;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char holds[ROW_TEXT];
        tn_origin origin = origin_in(context, i);
        (void)tn_setting_write_resolved(context, i, holds, sizeof holds);
        used += (size_t)snprintf(
            out + used, ALL_TEXT - used, "%s=%s (%s) %lld %lld [%s, %s]\n", key_of(i),
            text_in(context, i), holds, (long long)tn_setting_value(context, i),
            (long long)tn_setting_resolved(context, i), origin.text, key_of(origin.from));
        if (used >= ALL_TEXT)
            fail_msg("the settings' text is too long");
    }
}

/* Nothing has changed since `before` was written. */
static inline void assert_all(const tn_context *context, const char before[ALL_TEXT])
{
    char now[ALL_TEXT];
    write_all(context, now);
    assert_string_equal(now, before);
}

static inline tn_change parsed(const char *text)
{
    tn_change change;
    tn_error err = {0};
    if (tn_setting_parse(text, &change, &err))
        fail_msg("%s: %s", text, err.message);
    return change;
}

static inline void set(const char *text)
{
    tn_error err = {0};
    if (tn_settings_set(text, &err))
        fail_msg("%s: %s", text, err.message);
}

static inline void reset(const char *key)
{
    tn_error err = {0};
    if (tn_settings_reset(key, &err))
        fail_msg("%s: %s", key ? key : "all", err.message);
}

static inline void enter(tn_scope *scope, const char *text)
{
    tn_change change = parsed(text);
    tn_error err = {0};
    if (tn_scope_enter(scope, &change, 1, &err))
        fail_msg("%s: %s", text, err.message);
}

static inline tn_context *captured(void)
{
    tn_context *context = NULL;
    tn_error err = {0};
    if (tn_context_capture(&context, &err))
        fail_msg("%s", err.message);
    return context;
}

static inline tn_context *derived(const tn_context *from, const char *text)
{
    tn_change change = parsed(text);
    tn_context *context = NULL;
    tn_error err = {0};
    if (tn_context_derive(from, &change, 1, &context, &err))
        fail_msg("%s: %s", text, err.message);
    return context;
}

/* Calls `take` with changes of a row and the text that each reads back as: every word, the ends of
 * every range, orders, rules of every strength. */
typedef void take_value(const tn_change *change, const char *text, void *user);

static inline void each_word(tn_setting setting, take_value *take, void *user)
{
    const tni_word_list *words = tni_setting_row_of(setting)->words;
    for (size_t i = 0; i < words->settable; i++)
        take(&(tn_change){.setting = setting, .value = (int64_t)i}, words->words[i], user);
}

static inline void each_number(tn_setting setting, take_value *take, void *user)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    const int64_t values[] = {row->least,    row->least + 1, row->most - 1, row->most,
                              row->standard, 1000,           1024,          1025};
    static const char *const in_units[] = {"1k", "1025"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)values[i]);
        if (row->word && values[i] == row->standard)
            snprintf(text, sizeof text, "%s", row->word);
        else if (row->kind == TN_VALUE_BYTES && values[i] == 268435456)
            snprintf(text, sizeof text, "256m");
        else if (row->kind == TN_VALUE_BYTES && values[i] >= 1024 && values[i] <= 1025)
            snprintf(text, sizeof text, "%s", in_units[values[i] - 1024]);
        if (values[i] <= row->most)
            take(&(tn_change){.setting = setting, .value = values[i]}, text, user);
    }
}

/* Each word first, and the others behind it as they stand in the table; then the last two. */
static inline void each_order(tn_setting setting, take_value *take, void *user)
{
    const tni_word_list *words = tni_setting_row_of(setting)->words;
    char text[512], asked[128];
    for (size_t first = 0; first < words->settable; first++) {
        size_t used = (size_t)snprintf(text, sizeof text, "%s", words->words[first]);
        for (size_t i = 0; i < words->settable; i++) {
            if (i != first)
                used += (size_t)snprintf(text + used, sizeof text - used, ", %s", words->words[i]);
        }
        take(&(tn_change){.setting = setting, .value = 9, .text = words->words[first]}, text, user);
        take(&(tn_change){.setting = setting, .text = text}, text, user);
    }
    size_t last = words->settable - 1;
    snprintf(asked, sizeof asked, " %s ,\t%s ", words->words[last], words->words[last - 1]);
    size_t used =
        (size_t)snprintf(text, sizeof text, "%s, %s", words->words[last], words->words[last - 1]);
    for (size_t i = 0; i + 1 < last; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ", %s", words->words[i]);
    take(&(tn_change){.setting = setting, .text = asked}, text, user);
}

static inline void each_rule(tn_setting setting, take_value *take, void *user)
{
    char text[128];
    for (int32_t strength = TN_PERMIT; strength <= TN_FORBID; strength++) {
        snprintf(text, sizeof text, "%s:mkl", tn_strength_name(strength));
        take(&(tn_change){setting, strength, 9, "mkl"}, text, user); /* the number means nothing */
        snprintf(text, sizeof text, "%s:one, two-2, th_ree*", tn_strength_name(strength));
        take(&(tn_change){.setting = setting, .strength = strength, .text = "ONE,two-2 , th_ree*"},
             text, user);
    }
    take(&(tn_change){.setting = setting, .strength = TN_REQUIRE, .text = " Any "}, "any", user);
}

static inline void each_list(tn_setting setting, take_value *take, void *user)
{
    static const char *const lists[] = {"", "forbid:library:cudnn",
                                        "require:matmul/library:mkl, prefer:cpu.matmul.avx2",
                                        "permit:*, avoid:language:triton, forbid:fft/platform:cu*"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        take(&(tn_change){setting, -1, 9, lists[i]}, lists[i], user);
}

static inline void each_value(tn_setting setting, take_value *take, void *user)
{
    switch (tni_setting_row_of(setting)->kind) {
    case TN_VALUE_BOOL:
        take(&(tn_change){.setting = setting, .value = 0}, "false", user);
        take(&(tn_change){.setting = setting, .value = 1}, "true", user);
        break;
    case TN_VALUE_INT:
    case TN_VALUE_BYTES: each_number(setting, take, user); break;
    case TN_VALUE_WORD: each_word(setting, take, user); break;
    case TN_VALUE_ORDER: each_order(setting, take, user); break;
    case TN_VALUE_RULE: each_rule(setting, take, user); break;
    case TN_VALUE_RULES: each_list(setting, take, user); break;
    default: fail_msg("%s has a kind of which no values are known", key_of(setting));
    }
}

/* A value that is not the default, as text. */
static inline const char *other_value(tn_setting setting)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    switch (row->kind) {
    case TN_VALUE_BOOL: return strcmp(row->facts.standard, "true") == 0 ? "false" : "true";
    case TN_VALUE_INT: return "7";
    case TN_VALUE_BYTES: return "7k";
    case TN_VALUE_WORD: return row->words->words[1];
    case TN_VALUE_ORDER: return "math, cudnn, flash, mem_efficient, overrideable";
    case TN_VALUE_RULE: return "prefer:mkl, openblas";
    default: return "avoid:library:mkl";
    }
}

#if !defined(_WIN32)

/* A child that says what it finds: assertions are its parent's. One that hangs is ended by its
 * alarm. */
typedef void child_fn(FILE *say, const void *user);

enum { CHILD_SAYS = 1 << 18 };

static inline void child_run_(int to, child_fn *run, const void *user)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t alarms;
    FILE *say = fdopen(to, "w");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        (void)signal(faults[i], SIG_DFL); /* not the framework's, which goes on with its tests */
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    (void)sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    (void)alarm(TEST_HANG_SECONDS);
    if (!say)
        _exit(2);
    run(say, user);
    _exit(fclose(say) == 0 ? 0 : 2);
}

/* What it said; lent until the next child. It must end well. */
static inline const char *child_says(child_fn *run, const void *user)
{
    static char said[CHILD_SAYS];
    int ends[2], status = -1;
    size_t used = 0;
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ends[0]);
        child_run_(ends[1], run, user);
    }
    (void)close(ends[1]);
    for (ssize_t count = 1; count > 0 && used < sizeof said - 1; used += (size_t)count) {
        count = read(ends[0], said + used, sizeof said - 1 - used);
        if (count < 0)
            break;
    }
    said[used] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("the child ended with status %#x after it said \"%s\"", (unsigned)status, said);
    return said;
}

#endif

#endif
