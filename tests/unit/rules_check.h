/* Lists of rules written as text, for the suites about them. */
#ifndef TENON_TEST_RULES_CHECK_H
#define TENON_TEST_RULES_CHECK_H

#include "test.h"

#include "settings/rules.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ROW = TN_SETTING_RULES, OTHER_ROW = TN_SETTING_MATMUL_LIBRARY };

/* A generator of its own, so that a seed gives the same lists everywhere. */
static inline uint64_t random_next(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static inline tni_rule_request request(int32_t strength, const char *selector)
{
    return (tni_rule_request){.selector = selector, .strength = strength, .setting = ROW};
}

static inline tn_status change(const tni_rules *base, int32_t depth, const tni_rule_request *add,
                               size_t count, tni_rules **out, tn_error *err)
{
    const tni_rules_edit edit = {
        .level = TN_LEVEL_PROCESS, .depth = depth, .add = add, .add_count = count};
    return tni_rules_derive(base, &edit, out, err);
}

/* The list with one more rule; takes the place of the one given. */
static inline tni_rules *with(tni_rules *rules, int32_t depth, tni_rule_request add)
{
    tni_rules *more = NULL;
    tn_error err = {0};
    if (change(rules, depth, &add, 1, &more, &err))
        fail_msg("%s: %s", add.selector, err.message);
    tni_rules_release(rules);
    return more;
}

static inline int32_t strength_of(const char *word)
{
    int32_t strength = TN_PERMIT;
    while (strength <= TN_FORBID && strcmp(tn_strength_name(strength), word) != 0)
        strength++;
    assert_true(strength <= TN_FORBID);
    return strength;
}

/* "4:forbid:library:mkl 3:@prefer:mkl": depth, strength and selector of each, as they are added; those
 * with an '@' are of the other row. */
static inline tni_rules *list_of(const char *text)
{
    tni_rules *rules = NULL;
    int depth, used;
    char strength[16], selector[TNI_SELECTOR_MAX];
    for (; sscanf(text, " %d:%15[^:]:%159s%n", &depth, strength, selector, &used) == 3;
         text += used) {
        bool other = strength[0] == '@';
        tni_rule_request add = request(strength_of(strength + other), selector);
        add.setting = other ? OTHER_ROW : ROW;
        rules = with(rules, depth, add);
    }
    assert_int_equal(text[strspn(text, " ")], '\0');
    return rules;
}

/* The other way round. */
static inline const char *text_of(const tni_rules *rules, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *rule = tni_rules_at(rules, i);
        used += (size_t)snprintf(out + used, size - used, "%s%d:%s:%s", i ? " " : "",
                                 (int)rule->depth, tn_strength_name(rule->strength), rule->text);
        assert_true(used < size);
    }
    return out;
}

#endif
