/* Any sequence of scopes and changes against a plain model, and with each allocation failing in turn:
 * what is read is what the model says, and all ends where it began. */
#include "settings_check.h"

#include "fault/fault.h"

#include <time.h>

enum { SCOPES = 6, CHANGES = 3, TEXT = 96 };

/* The text of every row that stands for itself alone; "" in a layer that leaves it alone. */
typedef struct layer {
    char texts[TN_SETTING_COUNT][TEXT];
} layer;

typedef struct model {
    uint64_t seed;
    uint64_t random;
    int step;
    layer process;
    tn_scope scopes[SCOPES];
    layer layers[SCOPES];
    bool whole[SCOPES]; /* the layer takes the place of all that is outside */
    int order[SCOPES];  /* open ones, the outermost first                   */
    int open;
    tn_context *kept; /* captured some time ago, or NULL */
    layer kept_layer;
} model;

static uint64_t draw(model *m, uint64_t below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (m->random >> 33) % below;
}

/* Views see other rows, and the list of rules is what all levels say together. */
static bool is_modelled(tn_setting setting)
{
    return !tn_setting_info(setting)->view && setting != TN_SETTING_RULES;
}

static const char *draw_value(model *m, tn_setting setting)
{
    static const char *const numbers[] = {"0", "1", "77", "1000"};
    static const char *const rules[] = {"any", "prefer:mkl", "require:mkl, openblas", "avoid:x*"};
    static const char *const orders[] = {"math, flash, mem_efficient, cudnn, overrideable",
                                         "flash, mem_efficient, math, cudnn, overrideable"};
    const tni_setting_row *row = tni_setting_row_of(setting);
    switch (row->kind) {
    case TN_VALUE_BOOL: return draw(m, 2) ? "true" : "false";
    case TN_VALUE_INT:
    case TN_VALUE_BYTES: return draw(m, 3) ? numbers[draw(m, 4)] : row->facts.standard;
    case TN_VALUE_WORD: return row->words->words[draw(m, row->words->settable)];
    case TN_VALUE_ORDER: return orders[draw(m, 2)];
    default: return rules[draw(m, 4)];
    }
}

/* What reading gives for a text that was set. */
static const char *shown(tn_setting setting, const char *text)
{
    const tni_setting_row *row = tni_setting_row_of(setting);
    return row->word && atoi(text) == 0 && text[0] == '0' && row->standard == 0 ? row->word : text;
}

static void look_at(const model *m, layer *out)
{
    *out = m->process;
    for (int i = 0; i < m->open; i++) {
        const layer *over = &m->layers[m->order[i]];
        for (tn_setting row = 0; row < TN_SETTING_COUNT; row++) {
            if (m->whole[m->order[i]] || over->texts[row][0])
                memcpy(out->texts[row], over->texts[row], TEXT);
        }
    }
}

static void check(const model *m, const tn_context *context, const layer *expected)
{
    for (tn_setting row = 0; row < TN_SETTING_COUNT; row++) {
        const char *found = is_modelled(row) ? text_in(context, row) : "";
        if (is_modelled(row) && strcmp(found, expected->texts[row]) != 0)
            fail_msg("seed %llu, step %d: %s is \"%s\" instead of \"%s\"",
                     (unsigned long long)m->seed, m->step, key_of(row), found,
                     expected->texts[row]);
    }
}

static tn_setting draw_row(model *m)
{
    tn_setting row;
    do
        row = (tn_setting)draw(m, TN_SETTING_COUNT);
    while (!is_modelled(row) || tn_setting_info(row)->process_only);
    return row;
}

/* Up to CHANGES of them, in `to` as well. */
static size_t draw_changes(model *m, layer *to, char texts[CHANGES][TEXT + 64],
                           tn_change out[CHANGES])
{
    size_t count = draw(m, CHANGES + 1);
    for (size_t i = 0; i < count; i++) {
        tn_setting row = draw_row(m);
        const char *value = draw_value(m, row);
        snprintf(texts[i], TEXT + 64, "%s=%s", key_of(row), value);
        snprintf(to->texts[row], TEXT, "%s", shown(row, value));
        out[i] = parsed(texts[i]);
    }
    return count;
}

static int free_scope(const model *m)
{
    for (int i = 0; i < SCOPES; i++) {
        if (!m->scopes[i].inside)
            return i;
    }
    return -1;
}

static void do_enter(model *m, bool whole)
{
    char texts[CHANGES][TEXT + 64];
    tn_change changes[CHANGES];
    tn_error err = {0};
    int at = free_scope(m);
    if (at < 0 || (whole && !m->kept))
        return;
    m->whole[at] = whole;
    m->layers[at] = whole ? m->kept_layer : (layer){{{0}}};
    size_t count = whole ? 0 : draw_changes(m, &m->layers[at], texts, changes);
    tn_status status = whole ? tn_scope_enter_context(&m->scopes[at], m->kept, &err)
                             : tn_scope_enter(&m->scopes[at], changes, count, &err);
    if (status)
        fail_msg("seed %llu, step %d: %s", (unsigned long long)m->seed, m->step, err.message);
    m->order[m->open++] = at;
}

static void do_leave(model *m, int which)
{
    int at = m->order[which];
    tn_scope_leave(&m->scopes[at]);
    for (int i = which; i + 1 < m->open; i++)
        m->order[i] = m->order[i + 1];
    m->open--;
}

static void do_change(model *m)
{
    char texts[CHANGES][TEXT + 64];
    tn_change changes[CHANGES];
    tn_error err = {0};
    size_t count = draw_changes(m, &m->process, texts, changes);
    if (tn_settings_change(changes, count, &err))
        fail_msg("seed %llu, step %d: %s", (unsigned long long)m->seed, m->step, err.message);
}

static void forget(model *m, tn_setting row)
{
    snprintf(m->process.texts[row], TEXT, "%s", tn_setting_info(row)->standard);
}

static void do_reset(model *m)
{
    tn_setting row = draw_row(m);
    bool all = draw(m, 4) == 0;
    reset(all ? NULL : key_of(row));
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        if (all || i == row)
            forget(m, i);
    }
}

static void do_keep(model *m)
{
    tn_context_release(m->kept);
    m->kept = captured();
    look_at(m, &m->kept_layer);
}

static void do_derive(model *m)
{
    char texts[CHANGES][TEXT + 64];
    tn_change changes[CHANGES];
    tn_context *context = NULL;
    layer expected = m->kept_layer;
    if (!m->kept)
        look_at(m, &expected);
    size_t count = draw_changes(m, &expected, texts, changes);
    assert_int_equal(tn_context_derive(m->kept, changes, count, &context, NULL), TN_OK);
    check(m, context, &expected);
    tn_context_release(context);
}

static void do_step(model *m)
{
    switch (draw(m, 10)) {
    case 0:
    case 1:
    case 2: do_enter(m, false); break;
    case 3: do_enter(m, true); break;
    case 4:
    case 5:
        if (m->open)
            do_leave(m, (int)draw(m, (uint64_t)m->open));
        break;
    case 6:
    case 7: do_change(m); break;
    case 8: do_reset(m); break;
    default: draw(m, 2) ? do_keep(m) : do_derive(m); break;
    }
}

/* Reads after every step, or only now and then: what a thread keeps may not show. */
static void live(uint64_t seed, bool read_always)
{
    static model m;
    static layer expected;
    m = (model){.seed = seed, .random = seed};
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        forget(&m, i);
    for (m.step = 0; m.step < 60; m.step++) {
        do_step(&m);
        if (!read_always && draw(&m, 4) != 0)
            continue;
        look_at(&m, &expected);
        check(&m, NULL, &expected);
        if (m.kept)
            check(&m, m.kept, &m.kept_layer);
    }
    while (m.open)
        do_leave(&m, (int)draw(&m, (uint64_t)m.open));
    look_at(&m, &expected);
    check(&m, NULL, &expected);
    reset(NULL);
    tn_context_release(m.kept);
}

static void any_sequence_ends_where_it_began(void **state)
{
    const char *wished = getenv("TN_TEST_SEED");
    uint64_t seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    char before[ALL_TEXT];
    (void)state;
    if (wished)
        seed = strtoull(wished, NULL, 10);
    write_all(NULL, before);
    int64_t blocks = tn_allocator_blocks();
    for (int round = 0; round < (test_reduced() ? 60 : 400); round++) {
        live(seed, round % 2 == 0);
        assert_all(NULL, before);
        if (tn_allocator_blocks() != blocks)
            fail_msg("seed %llu: %lld blocks are left", (unsigned long long)seed,
                     (long long)(tn_allocator_blocks() - blocks));
        seed = wished ? seed : seed * 6364136223846793005u + 1;
    }
}

/* Ways to change something. Each does its part and gives back what it took. */
static tn_context *lent;

static tn_status try_enter(tn_error *err)
{
    tn_scope scope = {0};
    const tn_change changes[] = {tn_with_tuning_limit(3), tn_with_cudnn_enabled(0),
                                 tn_with_matmul_library(TN_PREFER, "mkl, openblas"),
                                 tn_with_rule(TN_FORBID, "language:triton")};
    tn_status status = tn_scope_enter(&scope, changes, 4, err);
    assert_int_equal(scope.inside == NULL, status != TN_OK);
    assert_int_equal(tn_get_tuning_limit(NULL), status ? 10 : 3);
    tn_scope_leave(&scope);
    return status;
}

static tn_status try_enter_context(tn_error *err)
{
    tn_scope scope = {0};
    tn_status status = tn_scope_enter_context(&scope, lent, err);
    assert_int_equal(scope.inside == NULL, status != TN_OK);
    assert_int_equal(tn_get_inference(NULL), status == TN_OK);
    tn_scope_leave(&scope);
    return status;
}

static tn_status try_derive(tn_error *err)
{
    tn_context *context = NULL;
    const tn_change changes[] = {tn_with_quantized_engine(TN_ENGINE_X86),
                                 tn_with_cuda_sdp_priority("math")};
    tn_status status = tn_context_derive(NULL, changes, 2, &context, err);
    assert_int_equal(context == NULL, status != TN_OK);
    tn_context_release(context);
    return status;
}

static tn_status try_parse(tn_error *err)
{
    tn_change change = {.setting = -7};
    tn_status status = tn_setting_parse("rules=forbid:library:mkl, prefer:x", &change, err);
    assert_int_equal(change.setting, status ? -7 : TN_SETTING_RULES);
    return status;
}

/* Reads with memory at hand: without, a thread in a scope goes on with what it had. */
static const char *library_text(void)
{
    fault_memory.armed = false;
    const char *text = text_in(NULL, TN_SETTING_MATMUL_LIBRARY);
    fault_memory.armed = true;
    return text;
}

/* The second step puts back what the first did. */
static tn_status try_process(tn_error *err)
{
    tn_status status = tn_settings_set("matmul.library=require:mkl", err);
    assert_string_equal(library_text(), status ? "any" : "require:mkl");
    if (status)
        return status;
    status = tn_settings_reset("matmul.library", err);
    assert_string_equal(library_text(), status ? "require:mkl" : "any");
    if (status) {
        fault_memory.armed = false;
        reset(NULL);
    }
    return status;
}

static tn_status try_threads(tn_error *err)
{
    tn_status status = tn_parallel_threads_set(2, err);
    if (!status)
        status = tn_parallel_threads_set(0, err);
    if (status) {
        fault_memory.armed = false;
        reset(NULL);
    }
    return status;
}

static void fail_each(tn_status (*attempt)(tn_error *err), const char *what)
{
    char before[ALL_TEXT];
    bool fired = true;
    write_all(NULL, before);
    for (long n = 1; fired; n++) {
        tn_error err = {0};
        struct fault_state was = fault_look();
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = attempt(&err);
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        if (fired)
            assert_contains(err.message, "no memory for");
        assert_all(NULL, before);
        if (fault_left(was, what, n))
            fail();
        assert_true(n < 100);
    }
}

static void want_of_memory_changes_nothing(void **state)
{
    tn_scope scope = {0};
    (void)state;
    lent = derived(NULL, "inference=true");
    for (int inside = 0; inside < 2; inside++) {
        fail_each(try_enter, "enter");
        fail_each(try_enter_context, "enter a context");
        fail_each(try_derive, "derive");
        fail_each(try_parse, "parse");
        fail_each(try_process, "set");
        fail_each(try_threads, "threads");
        if (!inside)
            enter(&scope, "cudnn.benchmark=true");
    }
    tn_scope_leave(&scope);
    tn_context_release(lent);
}

/* Without memory to put its scopes over what is new a thread goes on with what it had, whole; it sees
 * the new as soon as there is some. */
static void reading_needs_no_memory(void **state)
{
    tn_scope a = {0}, b = {0};
    (void)state;
    enter(&a, "inference=true");
    enter(&b, "cudnn.benchmark=true");
    const tn_change both[] = {tn_with_tuning_limit(3), tn_with_cudnn_benchmark_limit(3)};
    assert_int_equal(tn_settings_change(both, 2, NULL), TN_OK);
    fault_arm(&fault_memory, 1, true, 0);
    assert_int_equal(tn_get_tuning_limit(NULL), 10);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 10);
    assert_int_equal(tn_get_inference(NULL), 1);
    fault_arm(&fault_memory, 2, true, 0); /* one scope finds memory, the other none */
    assert_int_equal(tn_get_tuning_limit(NULL), 10);
    assert_int_equal(tn_get_cudnn_benchmark(NULL), 1);
    fault_arm(&fault_memory, 1, true, 0);
    tn_scope_leave(&b); /* what it named is gone all the same */
    assert_int_equal(tn_get_cudnn_benchmark(NULL), 0);
    assert_int_equal(tn_get_inference(NULL), 1);
    assert_int_equal(tn_scope_enter(&b, both, 2, NULL), TN_OUT_OF_MEMORY);
    assert_null(b.inside);
    assert_true(fault_end(&fault_memory));
    assert_int_equal(tn_get_tuning_limit(NULL), 3);
    assert_int_equal(tn_get_cudnn_benchmark_limit(NULL), 3);
    fault_arm(&fault_memory, 1, true, 0);
    tn_scope_leave(&a);
    assert_int_equal(tn_get_tuning_limit(NULL), 3);
    assert_int_equal(tn_get_inference(NULL), 0);
    assert_false(fault_end(&fault_memory));
    reset(NULL);
}

/* Nor does taking back what was set, when nothing else was. */
static void a_last_reset_needs_no_memory(void **state)
{
    char before[ALL_TEXT];
    (void)state;
    write_all(NULL, before);
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char text[ROW_TEXT];
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        set(text);
        fault_arm(&fault_memory, 1, true, 0);
        reset(i % 2 ? NULL : key_of(i));
        assert_false(fault_end(&fault_memory));
        assert_all(NULL, before);
    }
}

static void an_outer_scope_is_left_without_memory(void **state)
{
    tn_scope a = {0}, b = {0};
    (void)state;
    enter(&a, "inference=true");
    enter(&b, "cudnn.benchmark=true");
    fault_arm(&fault_memory, 1, true, 0);
    tn_scope_leave(&a);
    tn_scope_leave(&b);
    assert_int_equal(tn_get_inference(NULL), 0);
    assert_int_equal(tn_get_cudnn_benchmark(NULL), 0);
    assert_false(fault_end(&fault_memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_sequence_ends_where_it_began),
        cmocka_unit_test(want_of_memory_changes_nothing),
        cmocka_unit_test(reading_needs_no_memory),
        cmocka_unit_test(a_last_reset_needs_no_memory),
        cmocka_unit_test(an_outer_scope_is_left_without_memory),
    };
    forget_settings();
    fault_memory_install();
    return run_suite("unit.scopes_model", tests);
}
