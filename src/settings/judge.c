#include "rules.h"

/* A candidate, and the rules that judge it: a list without the rules of the setting `but`. */
typedef struct question {
    const tni_rules *rules;
    const tni_candidate *candidate;
    tn_setting but;
    bool switches; /* hard rules: only attention's switches, and the permits of `rules` */
} question;

/* A permit of a setting other than `rules` only replaces the setting's farther value. */
static bool is_heard(const tni_rule *rule, tn_setting but, bool shadowed)
{
    return rule->setting != but && (shadowed || !rule->shadowed) &&
           (rule->strength != TN_PERMIT || rule->setting == TN_SETTING_RULES);
}

/* Whether a hard rule belongs to the question: attention's switches are judged apart. */
static bool belongs_to(const tni_rule *rule, const question *q)
{
    bool is_switch =
        rule->setting >= TN_SETTING_CUDA_FLASH_SDP && rule->setting <= TN_SETTING_CUDA_SDP_PRIORITY;
    return is_switch == q->switches || rule->strength == TN_PERMIT;
}

static bool is_soft(const tni_rule *rule)
{
    return rule->strength == TN_PREFER || rule->strength == TN_AVOID;
}

static size_t level_end(const tni_rules *rules, size_t begin)
{
    size_t end = begin;
    while (end < tni_rules_count(rules) &&
           tni_rules_at(rules, end)->depth == tni_rules_at(rules, begin)->depth)
        end++;
    return end;
}

/* Whether the candidate matches a rule of the level that is an alternative of `required`. */
static bool is_met(const question *q, const tni_rule *required, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const tni_rule *rule = tni_rules_at(q->rules, i);
        if (tni_rules_are_alternatives(rule, required) &&
            tni_selector_matches(&rule->selector, q->candidate))
            return true;
    }
    return false;
}

/* Returns what a hard rule of the level from `begin` to `end` says about the candidate; -1 if it
 * does not speak of it, or if one of its alternatives is met. */
static int32_t ask_rule(const question *q, const tni_rule *rule, size_t begin, size_t end)
{
    bool speaks = tni_selector_speaks_of(&rule->selector, q->candidate);
    if (speaks && tni_selector_matches(&rule->selector, q->candidate))
        return rule->strength == TN_FORBID    ? TNI_JUDGED_FORBIDDEN
               : rule->strength == TN_REQUIRE ? TNI_JUDGED_REQUIRED
                                              : TNI_JUDGED_FREE;
    return speaks && rule->strength == TN_REQUIRE && !is_met(q, rule, begin, end)
               ? TNI_JUDGED_PASSED_OVER
               : -1;
}

/* Finds the strongest verdict of the hard rules of one level, and the first rule that gives it. */
static void judge_level(const question *q, size_t begin, bool shadowed, tni_judgement *out)
{
    size_t end = level_end(q->rules, begin);
    for (size_t i = begin; i < end; i++) {
        const tni_rule *rule = tni_rules_at(q->rules, i);
        bool counts = !is_soft(rule) && is_heard(rule, q->but, shadowed) && belongs_to(rule, q);
        int32_t says = counts ? ask_rule(q, rule, begin, end) : -1;
        if (says >= 0 && (!out->rule || says > out->says)) {
            out->says = says;
            out->rule = rule;
        }
    }
}

/* The first sentence: the nearest level that speaks of the candidate decides whether it may run. */
static void judge_hard(const question *q, tni_judgement *out)
{
    size_t count = tni_rules_count(q->rules);
    for (size_t i = 0; i < count && !out->rule; i = level_end(q->rules, i))
        judge_level(q, i, false, out);
    for (size_t i = 0; i < count && !out->overrode; i = level_end(q->rules, i)) {
        tni_judgement here = {.says = TNI_JUDGED_FREE};
        judge_level(q, i, true, &here);
        if (here.rule && tni_judged_may_run(&here) != tni_judged_may_run(out))
            out->overrode = here.rule;
    }
}

/* Returns the nearest soft rule that matches the candidate; if `other` is not NULL, the nearest of
 * another level and strength. */
static const tni_rule *find_soft(const question *q, bool shadowed, const tni_rule *other)
{
    for (size_t i = 0; i < tni_rules_count(q->rules); i++) {
        const tni_rule *rule = tni_rules_at(q->rules, i);
        if (is_soft(rule) && is_heard(rule, q->but, shadowed) &&
            (!other || (rule->strength != other->strength && rule->depth != other->depth)) &&
            tni_selector_matches(&rule->selector, q->candidate))
            return rule;
    }
    return NULL;
}

bool tni_judged_may_run(const tni_judgement *judged)
{
    return judged->says < TNI_JUDGED_PASSED_OVER;
}

void tni_rules_judge(const tni_rules *rules, const tni_candidate *candidate, tni_judgement *out)
{
    tni_rules_judge_but(rules, candidate, -1, out);
}

void tni_rules_judge_but(const tni_rules *rules, const tni_candidate *candidate, tn_setting but,
                         tni_judgement *out)
{
    const question q = {rules, candidate, but, false}, switches = {rules, candidate, but, true};
    tni_judgement apart = {.says = TNI_JUDGED_FREE};
    *out = apart;
    judge_hard(&q, out);
    judge_hard(&switches, &apart);
    if (tni_judged_may_run(out) && !tni_judged_may_run(&apart))
        *out = apart;
    else if (!out->overrode && out->rule == apart.rule)
        out->overrode = apart.overrode;
    const tni_rule *soft = find_soft(&q, false, NULL), *overrode = find_soft(&q, true, soft);
    if (soft)
        out->order = soft->strength == TN_PREFER ? TNI_JUDGED_PREFERRED : TNI_JUDGED_AVOIDED;
    if (soft && out->says == TNI_JUDGED_FREE)
        *out = (tni_judgement){out->order, out->order, soft, overrode};
    else if (!out->rule && !out->overrode)
        out->overrode = overrode;
}

int32_t tni_rules_compare(const tni_rules *rules, const tni_candidate *a, const tni_candidate *b,
                          tn_setting but)
{
    for (size_t i = 0; i < tni_rules_count(rules); i++) {
        const tni_rule *rule = tni_rules_at(rules, i);
        if (!is_soft(rule) || !is_heard(rule, but, false))
            continue;
        int32_t more = (int32_t)tni_selector_matches(&rule->selector, a) -
                       (int32_t)tni_selector_matches(&rule->selector, b);
        if (more)
            return rule->strength == TN_PREFER ? -more : more;
    }
    return 0;
}
