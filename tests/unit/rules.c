/* Lists of rules: their order, what is refused, and how they are counted. */
#include "rules_check.h"

#include "settings/context.h"
#include "tenon/alloc.h"

static void assert_list(const tni_rules *rules, const char *expected)
{
    char text[4096];
    assert_string_equal(text_of(rules, text, sizeof text), expected);
}

static void nearest_come_first_and_later_ones_behind(void **state)
{
    tni_rules *rules = list_of("3:prefer:library:mkl 5:forbid:a 3:avoid:kernel:x.y 4:require:b "
                               "3:prefer:library:blis");
    (void)state;
    assert_list(rules, "5:forbid:a 4:require:b 3:prefer:library:mkl 3:avoid:x.y "
                       "3:prefer:library:blis");
    assert_int_equal(tni_rules_at(rules, 3)->level, TN_LEVEL_PROCESS);
    assert_int_equal(tni_rules_at(rules, 3)->setting, ROW);
    assert_int_equal(tni_rules_at(rules, 3)->selector.kind, TNI_SELECT_KERNEL);
    assert_string_equal(tni_rules_at(rules, 3)->selector.name, "x.y");
    assert_null(tni_rules_at(rules, 5));
    tni_rules_release(rules);
}

static void no_rules_are_null(void **state)
{
    const tn_setting row = ROW;
    const tni_rules_edit clear = {.depth = 3, .clear = &row, .clear_count = 1};
    const tni_candidate candidate = {"", "", "", "", "", "", "", NULL, NULL};
    tni_rules *rules = list_of("3:forbid:a"), *none = rules;
    tni_judgement judged;
    tn_error err;
    (void)state;
    assert_int_equal(tni_rules_derive(rules, &clear, &none, &err), TN_OK);
    assert_null(none);
    none = rules;
    assert_int_equal(tni_rules_derive(NULL, &clear, &none, &err), TN_OK);
    assert_null(none);
    assert_int_equal(tni_rules_count(NULL), 0);
    assert_null(tni_rules_at(NULL, 0));
    assert_null(tni_rules_retain(NULL));
    tni_rules_release(NULL);
    tni_rules_judge(NULL, &candidate, &judged);
    assert_int_equal(judged.says, TNI_JUDGED_FREE);
    assert_null(judged.rule);
    assert_null(judged.overrode);
    tni_rules_release(rules);
}

static void lists_are_counted_and_stand_alone(void **state)
{
    tni_rules *first = list_of("3:forbid:library:mkl"), *second = NULL, *same = NULL;
    tni_rule_request add = request(TN_PREFER, "fft/a*");
    const tni_rules_edit nothing = {.depth = 3};
    tn_error err;
    (void)state;
    assert_int_equal(change(first, 4, &add, 1, &second, &err), TN_OK);
    assert_int_equal(tni_rules_derive(second, &nothing, &same, &err), TN_OK);
    assert_ptr_equal(same, second);
    assert_ptr_equal(tni_rules_retain(second), second);
    tni_rules_release(first);
    tni_rules_release(second);
    tni_rules_release(same);
    assert_list(second, "4:prefer:fft/a* 3:forbid:library:mkl");
    tni_rules_release(second);
    assert_int_equal(tn_allocator_blocks(), 0);
}

static void rows_are_cleared_at_their_depth_alone(void **state)
{
    static const tn_setting cleared[] = {TN_SETTING_CUDNN_ENABLED, OTHER_ROW};
    static const tni_rule_request add[] = {{.selector = "mkl",
                                            .strength = TN_REQUIRE,
                                            .setting = OTHER_ROW,
                                            .prefix = "matmul/library:"}};
    const tni_rules_edit edit = {TN_LEVEL_SCOPE, 4, cleared, COUNT(cleared), add, COUNT(add)};
    tni_rule_request other = {.selector = "x", .strength = TN_FORBID, .setting = OTHER_ROW};
    tni_rules *rules = list_of("5:avoid:a 4:avoid:b 3:avoid:c"), *after = NULL;
    tn_error err;
    (void)state;
    for (int32_t depth = 3; depth <= 5; depth++)
        rules = with(rules, depth, other);
    assert_list(rules, "5:avoid:a 5:forbid:x 4:avoid:b 4:forbid:x 3:avoid:c 3:forbid:x");
    assert_int_equal(tni_rules_derive(rules, &edit, &after, &err), TN_OK);
    assert_list(after, "5:avoid:a 5:forbid:x 4:avoid:b 4:require:matmul/library:mkl 3:avoid:c "
                       "3:forbid:x");
    assert_int_equal(tni_rules_at(after, 3)->level, TN_LEVEL_SCOPE);
    tni_rules_release(after);
    tni_rules_release(rules);
}

/* Two rows that say the same stay two, so that one can be cleared without the other. */
static void the_same_twice_is_one(void **state)
{
    static const tn_setting row = ROW;
    const tni_rules_edit clear = {.depth = 3, .clear = &row, .clear_count = 1};
    tni_rules *rules = list_of("3:prefer:a.b 3:prefer:c 3:prefer:kernel:A.B 4:prefer:c"),
              *rest = NULL;
    tni_rule_request other = {.selector = "c", .strength = TN_PREFER, .setting = OTHER_ROW};
    tn_error err;
    (void)state;
    assert_list(rules, "4:prefer:c 3:prefer:a.b 3:prefer:c");
    rules = with(rules, 3, other);
    assert_list(rules, "4:prefer:c 3:prefer:a.b 3:prefer:c 3:prefer:c");
    assert_int_equal(tni_rules_derive(rules, &clear, &rest, &err), TN_OK);
    assert_list(rest, "4:prefer:c 3:prefer:c");
    tni_rules_release(rest);
    tni_rules_release(rules);
}

static void contradictions_are_refused_with_both_rows(void **state)
{
    static const struct {
        int32_t first, second;
        const char *selector, *other, *words;
        bool one_row;
    } rows[] = {
        {TN_FORBID, TN_REQUIRE, "library:mkl", "matmul/library:mkl",
         "got forbid:library:mkl (rules) and require:matmul/library:mkl (matmul.library): they "
         "leave no candidate; remove one of them",
         false},
        {TN_REQUIRE, TN_FORBID, "a.b.c", "a.*",
         "got require:a.b.c (rules) and forbid:a.* (matmul.library): they leave no candidate",
         false},
        {TN_REQUIRE, TN_FORBID, "mkl", "MKL", "they leave no candidate", false},
        {TN_REQUIRE, TN_FORBID, "mkl", "mkl", "they leave no candidate", true},
        {TN_PREFER, TN_AVOID, "mkl", "mkl", "got prefer:mkl (rules) and avoid:mkl (rules): ", true},
        {TN_PREFER, TN_AVOID, "mkl", "mkl", "a selector can have only one strength", false},
        {TN_PERMIT, TN_FORBID, "mkl", "mkl", "they leave no candidate", true},
        {TN_PERMIT, TN_FORBID, "library:mkl", "m*", "they leave no candidate", false},
        {TN_REQUIRE, TN_PREFER, "x.y", "kernel:x.y", "a selector can have only one strength", true},
        {TN_REQUIRE, TN_REQUIRE, "library:mkl", "matmul/library:blis",
         "got require:library:mkl (rules) and require:matmul/library:blis (rules): no candidate is "
         "both; remove one of them",
         true},
        {TN_REQUIRE, TN_REQUIRE, "library:mkl", "library:blis", "no candidate is both", false},
        {TN_REQUIRE, TN_REQUIRE, "a.b", "a.c*", "no candidate is both", true},
        {TN_REQUIRE, TN_REQUIRE, "library:m*", "library:mkl", NULL, true},
        {TN_REQUIRE, TN_REQUIRE, "library:mkl", "platform:cpu", NULL, true},
        {TN_REQUIRE, TN_REQUIRE, "fft/library:mkl", "matmul/library:blis", NULL, true},
        {TN_REQUIRE, TN_REQUIRE, "backend:flash", "backend:math", NULL, true},
        {TN_REQUIRE, TN_REQUIRE, "mkl", "cpu", NULL, true},
        {TN_FORBID, TN_REQUIRE, "matmul/library:mkl", "library:mkl", NULL, true},
        {TN_FORBID, TN_REQUIRE, "library:mkl", "mkl", NULL, true},
        {TN_FORBID, TN_PERMIT, "library:mkl", "library:*", NULL, true},
        {TN_FORBID, TN_PERMIT, "mkl", "mkl", NULL, false},
        {TN_FORBID, TN_AVOID, "mkl*", "mkl", NULL, true},
        {TN_AVOID, TN_REQUIRE, "mkl*", "mkl", NULL, true},
        {TN_PREFER, TN_FORBID, "mkl", "mkl", NULL, false},
        {TN_PERMIT, TN_REQUIRE, "mkl", "mkl", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows) * 2; i++) {
        bool at_once = i & 1;
        tni_rule_request both[] = {request(rows[i / 2].first, rows[i / 2].selector),
                                   request(rows[i / 2].second, rows[i / 2].other)};
        both[1].setting = rows[i / 2].one_row ? ROW : OTHER_ROW;
        tni_rules *base = list_of("9:forbid:* 3:avoid:z 1:forbid:*"), *out = base;
        tn_error err = {0};
        if (!at_once)
            base = with(base, 3, both[0]);
        tn_status status = change(base, 3, both + !at_once, 1 + at_once, &out, &err);
        assert_int_equal(status, rows[i / 2].words ? TN_REFUSED : TN_OK);
        if (status) {
            bool one_value = at_once && rows[i / 2].one_row;
            assert_contains(err.message, rows[i / 2].words);
            assert_contains(err.message,
                            one_value ? "expected rules that agree within one value, got "
                                      : "expected rules that agree within the level process, got ");
            assert_contains(err.message, "; remove one of them");
        } else {
            tni_rules_release(out);
        }
        tni_rules_release(base);
    }
    assert_int_equal(tn_allocator_blocks(), 0);
}

/* The names in one value of a setting other than `rules` are alternatives: one of them is enough. */
static void alternatives_agree_if_one_does(void **state)
{
    tni_rule_request either[] = {request(TN_REQUIRE, "library:mkl"),
                                 request(TN_REQUIRE, "library:blis")};
    tni_rules *rules = list_of("3:require:library:blis"), *out = NULL;
    tn_error err = {0};
    (void)state;
    either[0].setting = either[1].setting = OTHER_ROW;
    assert_int_equal(change(rules, 3, either, 1, &out, &err), TN_REFUSED);
    assert_int_equal(change(rules, 3, either, 2, &out, &err), TN_OK);
    tni_rules_release(rules);
    const tni_rule_request more = request(TN_REQUIRE, "library:mkl");
    assert_int_equal(change(out, 3, &more, 1, &rules, &err), TN_REFUSED);
    assert_contains(err.message,
                    "got require:library:blis (rules) and require:library:mkl (rules)");
    tni_rules_release(out);
    rules = list_of("3:@require:library:mkl 3:@require:library:blis");
    assert_int_equal(change(rules, 3, &more, 1, &out, &err), TN_OK);
    tni_rules_release(out);
    const tni_rule_request third = request(TN_REQUIRE, "library:x");
    assert_int_equal(change(rules, 3, &third, 1, &out, &err), TN_REFUSED);
    tni_rules_release(rules);
    assert_int_equal(tn_allocator_blocks(), 0);
}

static void clearing_comes_before_contradicting(void **state)
{
    static const tn_setting row = ROW;
    const tni_rule_request add = request(TN_REQUIRE, "mkl");
    const tni_rules_edit edit = {TN_LEVEL_PROCESS, 3, &row, 1, &add, 1};
    tni_rules *rules = list_of("3:forbid:mkl"), *after = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tni_rules_derive(rules, &edit, &after, &err), TN_OK);
    assert_list(after, "3:require:mkl");
    tni_rules_release(after);
    tni_rules_release(rules);
}

static void bad_wishes_change_nothing(void **state)
{
    static const struct {
        tni_rule_request request;
        const char *words;
    } rows[] = {
        {{"mkl", TN_FORBID + 1, OTHER_ROW, NULL},
         "matmul.library: unknown strength 5: expected permit (0), require (1), prefer "
         "(2), avoid (3) or forbid (4)"},
        {{"mkl", -1, -7, NULL}, "unknown: unknown strength -1"},
        {{"libary:mkl", TN_FORBID, ROW, NULL}, "did you mean library?"},
        {{"library:mkl", TN_FORBID, ROW, "matmul/library:"}, "\"matmul/library:library:mkl\": "},
        {{"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
          "1234567890123456789012345678901234567890123456789012",
          TN_FORBID, ROW, "matmul/library:0123"},
         "\"matmul/library:01230123"},
    };
    tni_rules *rules = list_of("3:forbid:a");
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        tni_rule_request both[] = {request(TN_PREFER, "fine"), rows[i].request};
        tni_rules *out = rules;
        tn_error err = {0};
        assert_int_equal(change(rules, 3, both, 2, &out, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, rows[i].words);
        assert_ptr_equal(out, rules);
        assert_list(rules, "3:forbid:a");
    }
    tni_rules_release(rules);
    assert_int_equal(tn_allocator_blocks(), 0);
}

/* What other depths have does not count. */
static void a_depth_has_4096_at_most(void **state)
{
    enum { MOST = 4096 };
    static char names[MOST + 1][8];
    static tni_rule_request many[MOST + 1];
    tni_rules *rules = list_of("9:forbid:near 1:avoid:far"), *full = NULL, *out = NULL;
    tn_error err = {0};
    (void)state;
    for (size_t i = 0; i <= MOST; i++) {
        snprintf(names[i], sizeof names[i], "n%d", (int)i);
        many[i] = request(TN_PREFER, names[i]);
    }
    assert_int_equal(change(rules, 3, many, MOST + 1, &out, &err), TN_INVALID_ARGUMENT);
    assert_contains(
        err.message,
        "the level process already has 4096 rules, the maximum; cannot add prefer:n4096");
    assert_int_equal(change(rules, 3, many, MOST, &full, &err), TN_OK);
    assert_int_equal(tni_rules_count(full), MOST + 2);
    assert_string_equal(tni_rules_at(full, MOST)->text, "n4095");
    assert_string_equal(tni_rules_at(full, MOST + 1)->text, "far");
    assert_int_equal(change(full, 3, many + MOST, 1, &out, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(change(full, 3, many, 1, &out, &err), TN_OK); /* it is there already */
    assert_int_equal(tni_rules_count(out), MOST + 2);
    tni_rules_release(out);
    assert_int_equal(change(full, 5, many, 1, &out, &err), TN_OK);
    assert_int_equal(tni_rules_count(out), MOST + 3);
    tni_rules_release(out);
    tni_rules_release(full);
    tni_rules_release(rules);
}

static int64_t allocations_left, allocations;

static void *failing_alloc(void *self, size_t size, size_t align)
{
    (void)self;
    (void)align;
    allocations++;
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void failing_release(void *self, void *memory)
{
    (void)self;
    free(memory);
}

static void deriving_takes_one_block_or_fails_whole(void **state)
{
    const tn_allocator failing = {sizeof failing, NULL, failing_alloc, failing_release};
    const tni_rule_request add[] = {request(TN_PREFER, "matmul/library:mkl"),
                                    request(TN_AVOID, "cpu.*")};
    tni_rules *rules = NULL, *out = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_allocator_set(&failing, &err), TN_OK);
    allocations_left = 1;
    rules = list_of("3:forbid:a");
    allocations = 0;
    assert_int_equal(change(rules, 3, add, COUNT(add), &out, &err), TN_OUT_OF_MEMORY);
    assert_contains(err.message, "no memory for the rules");
    assert_null(out);
    assert_list(rules, "3:forbid:a");
    allocations_left = 1;
    assert_int_equal(change(rules, 3, add, COUNT(add), &out, &err), TN_OK);
    assert_int_equal(allocations, 2);
    assert_list(out, "3:forbid:a 3:prefer:matmul/library:mkl 3:avoid:cpu.*");
    tni_rules_release(out);
    tni_rules_release(rules);
    assert_int_equal(tn_allocator_set(NULL, &err), TN_OK);
}

static void a_context_shows_its_list(void **state)
{
    tn_context context = {.rules = list_of("3:prefer:kernel:a.b 4:forbid:attention/backend:flash")};
    tn_rule rule = {.struct_size = sizeof rule};
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_rule_count(&context), 2);
    assert_int_equal(tn_rule_at(&context, 0, &rule, &err), TN_OK);
    assert_int_equal(rule.strength, TN_FORBID);
    assert_int_equal(rule.level, TN_LEVEL_PROCESS);
    assert_int_equal(rule.setting, ROW);
    assert_int_equal(rule.depth, 4);
    assert_string_equal(rule.selector, "attention/backend:flash");
    assert_int_equal(tn_rule_at(&context, 1, &rule, &err), TN_OK);
    assert_string_equal(rule.selector, "a.b");
    assert_int_equal(rule.struct_size, sizeof rule);
    assert_int_equal(tn_rule_at(&context, 2, &rule, &err), TN_NOT_FOUND);
    assert_contains(err.message, "no rule 2: there are 2, numbered from 0");
    assert_string_equal(rule.selector, "a.b");
    assert_int_equal(tn_rule_at(NULL, 0, &rule, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "tn_context_capture");
    assert_int_equal(tn_rule_at(&context, 0, NULL, &err), TN_INVALID_ARGUMENT);
    rule.struct_size = TN_UP_TO(tn_rule, selector) - 1;
    assert_int_equal(tn_rule_at(&context, 0, &rule, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "out->struct_size is too small");
    assert_int_equal(tn_rule_count(NULL), 0);
    tni_rules_release(context.rules);
    context.rules = NULL;
    assert_int_equal(tn_rule_count(&context), 0);
}

static void strengths_have_names(void **state)
{
    (void)state;
    assert_string_equal(tn_strength_name(TN_PERMIT), "permit");
    assert_string_equal(tn_strength_name(TN_REQUIRE), "require");
    assert_string_equal(tn_strength_name(TN_PREFER), "prefer");
    assert_string_equal(tn_strength_name(TN_AVOID), "avoid");
    assert_string_equal(tn_strength_name(TN_FORBID), "forbid");
    assert_string_equal(tn_strength_name(TN_FORBID + 1), "unknown");
    assert_string_equal(tn_strength_name(-1), "unknown");
}

/* Rules in the order in which they came. */
typedef struct model {
    tni_rule_request rules[64];
    int32_t depths[64];
    size_t count;
} model;

static bool model_covers(const char *a, const char *b)
{
    char rooms[2][TNI_SELECTOR_MAX];
    tni_selector one, other;
    return !tni_selector_parse(a, rooms[0], &one, NULL) &&
           !tni_selector_parse(b, rooms[1], &other, NULL) && tni_selector_covers(&one, &other);
}

static bool model_soft(const tni_rule_request *rule)
{
    return rule->strength == TN_PREFER || rule->strength == TN_AVOID;
}

static bool model_clash(const tni_rule_request *a, const tni_rule_request *b)
{
    bool same = strcmp(a->selector, b->selector) == 0 && a->strength != b->strength;
    bool wants = b->strength == TN_REQUIRE || (b->strength == TN_PERMIT && b->setting == ROW);
    if (a->strength == TN_FORBID && wants && model_covers(a->selector, b->selector))
        return true;
    return same && (a->setting == b->setting || (model_soft(a) && model_soft(b)));
}

/* Whether both are libraries of one op, and none is both. */
static bool model_apart(const tni_rule_request *a, const tni_rule_request *b)
{
    static const char kind[] = "library:";
    const char *one = a->selector, *other = b->selector;
    return strncmp(one, kind, strlen(kind)) == 0 && strncmp(other, kind, strlen(kind)) == 0 &&
           !strchr(one, '*') && !strchr(other, '*') && strcmp(one, other) != 0;
}

static bool model_either(const tni_rule_request *a, const tni_rule_request *b)
{
    return a == b || (a->setting != ROW && a->setting == b->setting && b->strength == TN_REQUIRE);
}

/* Whether no two of what a depth requires are apart, with all alternatives of each. */
static bool model_agrees(const model *of, int32_t depth)
{
    bool agrees = true;
    for (size_t i = 0; i < of->count; i++) {
        for (size_t j = 0; j < of->count; j++) {
            const tni_rule_request *a = &of->rules[i], *b = &of->rules[j];
            bool both = a->strength == TN_REQUIRE && b->strength == TN_REQUIRE &&
                        of->depths[i] == depth && of->depths[j] == depth;
            bool holds = !both || model_either(a, b);
            for (size_t x = 0; x < of->count && !holds; x++)
                for (size_t y = 0; y < of->count && !holds; y++)
                    holds = of->depths[x] == depth && of->depths[y] == depth &&
                            model_either(a, &of->rules[x]) && model_either(b, &of->rules[y]) &&
                            !model_apart(&of->rules[x], &of->rules[y]);
            agrees = agrees && holds;
        }
    }
    return agrees;
}

/* False when it is refused; then the model is void. */
static bool model_add(model *to, int32_t depth, tni_rule_request add)
{
    for (size_t i = 0; i < to->count; i++) {
        const tni_rule_request *there = &to->rules[i];
        if (to->depths[i] != depth)
            continue;
        if (there->setting == add.setting && there->strength == add.strength &&
            strcmp(there->selector, add.selector) == 0)
            return true;
        if (model_clash(there, &add) || model_clash(&add, there))
            return false;
    }
    to->rules[to->count] = add;
    to->depths[to->count++] = depth;
    return true;
}

static void model_clear(model *to, int32_t depth, tn_setting row)
{
    size_t kept = 0;
    for (size_t i = 0; i < to->count; i++) {
        if (to->depths[i] == depth && to->rules[i].setting == row)
            continue;
        to->depths[kept] = to->depths[i];
        to->rules[kept++] = to->rules[i];
    }
    to->count = kept;
}

static void assert_as_model(const tni_rules *rules, const model *expected)
{
    size_t at = 0;
    assert_int_equal(tni_rules_count(rules), expected->count);
    for (int32_t depth = 9; depth >= 0; depth--) {
        for (size_t i = 0; i < expected->count; i++) {
            if (expected->depths[i] != depth)
                continue;
            const tni_rule *rule = tni_rules_at(rules, at++);
            assert_string_equal(rule->text, expected->rules[i].selector);
            assert_int_equal(rule->depth, depth);
            assert_int_equal(rule->strength, expected->rules[i].strength);
            assert_int_equal(rule->setting, expected->rules[i].setting);
        }
    }
}

/* One edit of up to one row cleared and three rules added; the list after it. */
static tni_rules *random_edit(uint64_t *seed, tni_rules *rules, model *expected, int *refused)
{
    static const char *const selectors[] = {"a",         "a*",           "library:a", "fft/a",
                                            "fft/x.y",   "x.*",          "*",         "library:*",
                                            "fft/lib-a", "language:a_b", "library:b"};
    static const tn_setting rows[] = {ROW, OTHER_ROW, TN_SETTING_CUDNN_ENABLED};
    tni_rule_request add[3];
    tn_setting row = rows[random_next(seed, COUNT(rows))];
    tni_rules_edit edit = {.level = TN_LEVEL_SCOPE,
                           .depth = (int32_t)random_next(seed, 4),
                           .clear = &row,
                           .clear_count = random_next(seed, 3) == 0,
                           .add = add,
                           .add_count = random_next(seed, expected->count < 40 ? 4 : 1)};
    model after = *expected;
    tni_rules *out = NULL;
    bool sound = true;
    if (edit.clear_count)
        model_clear(&after, edit.depth, row);
    for (size_t i = 0; i < edit.add_count; i++) {
        add[i] = request((int32_t)random_next(seed, TN_FORBID + 1),
                         selectors[random_next(seed, COUNT(selectors))]);
        add[i].setting = rows[random_next(seed, COUNT(rows))];
        sound = sound && model_add(&after, edit.depth, add[i]);
    }
    sound = sound && model_agrees(&after, edit.depth);
    assert_int_equal(tni_rules_derive(rules, &edit, &out, NULL), sound ? TN_OK : TN_REFUSED);
    *refused += !sound;
    if (!sound)
        return rules;
    *expected = after;
    tni_rules_release(rules);
    return out;
}

static void any_sequence_of_edits_is_as_told(void **state)
{
    int rounds = test_reduced() ? 200 : 2000, refused = 0;
    uint64_t seed = 20250311;
    (void)state;
    print_message("seed %llu, %d rounds\n", (unsigned long long)seed, rounds);
    for (int round = 0; round < rounds; round++) {
        model expected = {.count = 0};
        tni_rules *rules = NULL;
        for (int step = 0; step < 30; step++) {
            rules = random_edit(&seed, rules, &expected, &refused);
            assert_as_model(rules, &expected);
        }
        tni_rules_release(rules);
    }
    assert_in_range(refused, rounds, 20 * rounds);
    assert_int_equal(tn_allocator_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_come_first_and_later_ones_behind),
        cmocka_unit_test(no_rules_are_null),
        cmocka_unit_test(lists_are_counted_and_stand_alone),
        cmocka_unit_test(rows_are_cleared_at_their_depth_alone),
        cmocka_unit_test(the_same_twice_is_one),
        cmocka_unit_test(contradictions_are_refused_with_both_rows),
        cmocka_unit_test(alternatives_agree_if_one_does),
        cmocka_unit_test(clearing_comes_before_contradicting),
        cmocka_unit_test(bad_wishes_change_nothing),
        cmocka_unit_test(a_depth_has_4096_at_most),
        cmocka_unit_test(deriving_takes_one_block_or_fails_whole),
        cmocka_unit_test(a_context_shows_its_list),
        cmocka_unit_test(strengths_have_names),
        cmocka_unit_test(any_sequence_of_edits_is_as_told),
    };
    return run_suite("unit.rules", tests);
}
