#include "rules.h"

static const int32_t says[] = {
    [TN_PERMIT] = TNI_JUDGED_FREE,      [TN_REQUIRE] = TNI_JUDGED_REQUIRED,
    [TN_PREFER] = TNI_JUDGED_PREFERRED, [TN_AVOID] = TNI_JUDGED_AVOIDED,
    [TN_FORBID] = TNI_JUDGED_FORBIDDEN,
};

/* Where two things are said of one candidate, the heavier one holds. */
static const int32_t weights[] = {
    [TNI_JUDGED_FREE] = 0,     [TNI_JUDGED_PREFERRED] = 1,   [TNI_JUDGED_AVOIDED] = 2,
    [TNI_JUDGED_REQUIRED] = 3, [TNI_JUDGED_PASSED_OVER] = 4, [TNI_JUDGED_FORBIDDEN] = 5,
};

/* Of rules that say the same, the first in the list holds. */
static void weigh(const tni_rule *rule, int32_t says_it, tni_judgement *out)
{
    if (out->rule && weights[says_it] < weights[out->says])
        return;
    if (out->rule && says_it == out->says && rule > out->rule)
        return;
    out->says = says_it;
    out->rule = rule;
}

static bool speaks_of_op(const tni_rule *rule, const tni_candidate *candidate)
{
    const char *op = rule->selector.op;
    return !op[0] || strcmp(op, candidate->op) == 0;
}

/* A name alone has a say in every kind; in the one of its own it only requires. */
static bool has_say(const tni_rule *rule, int32_t kind)
{
    if (kind == TNI_SELECT_ANY)
        return rule->selector.kind == kind && rule->strength == TN_REQUIRE;
    return rule->selector.kind == kind || rule->selector.kind == TNI_SELECT_ANY;
}

static bool matches_by(const tni_rule *rule, int32_t kind, const tni_candidate *candidate)
{
    tni_selector selector = rule->selector;
    selector.kind = kind;
    return tni_selector_matches(&selector, candidate);
}

/* Whether one of the first `nearer` rules permits all that `rule` speaks of. */
static bool is_taken_back(const tni_rules *rules, size_t nearer, const tni_rule *rule)
{
    for (size_t i = 0; i < nearer; i++) {
        const tni_rule *other = tni_rules_at(rules, i);
        if (other->strength == TN_PERMIT && tni_selector_covers(&other->selector, &rule->selector))
            return true;
    }
    return false;
}

/* What the rules of [begin, end), which are of one depth, say by one kind; out->rule is NULL for
 * nothing. */
static void hear(const tni_rules *rules, size_t begin, size_t end, int32_t kind,
                 const tni_candidate *candidate, tni_judgement *out)
{
    const tni_rule *required = NULL;
    bool met = false;
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (size_t i = begin; i < end; i++) {
        const tni_rule *rule = tni_rules_at(rules, i);
        if (!has_say(rule, kind))
            continue;
        bool matches = matches_by(rule, kind, candidate);
        if (matches)
            weigh(rule, says[rule->strength], out);
        if (rule->strength != TN_REQUIRE || rule->selector.kind != kind)
            continue;
        met = met || matches;
        if (!required && speaks_of_op(rule, candidate) && !is_taken_back(rules, begin, rule))
            required = rule;
    }
    if (required && !met)
        weigh(required, TNI_JUDGED_PASSED_OVER, out);
}

static void judge_kind(const tni_rules *rules, int32_t kind, const tni_candidate *candidate,
                       tni_judgement *out)
{
    size_t count = tni_rules_count(rules), end;
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (size_t begin = 0; begin < count && !out->overrode; begin = end) {
        tni_judgement here;
        int32_t depth = tni_rules_at(rules, begin)->depth;
        end = begin + 1;
        while (end < count && tni_rules_at(rules, end)->depth == depth)
            end++;
        hear(rules, begin, end, kind, candidate, &here);
        if (here.rule && !out->rule)
            *out = here;
        else if (here.rule && here.says != out->says)
            out->overrode = here.rule;
    }
}

void tni_rules_judge(const tni_rules *rules, const tni_candidate *candidate, tni_judgement *out)
{
    tni_judgement by[TNI_SELECT_COUNT];
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (int32_t kind = 0; kind < TNI_SELECT_COUNT; kind++) {
        judge_kind(rules, kind, candidate, &by[kind]);
        bool counts = kind != TNI_SELECT_ANY || by[kind].says == TNI_JUDGED_PASSED_OVER;
        if (by[kind].rule && counts)
            weigh(by[kind].rule, by[kind].says, out);
    }
    for (int32_t kind = 0; kind < TNI_SELECT_COUNT; kind++) {
        const tni_rule *overrode = by[kind].rule == out->rule ? by[kind].overrode : NULL;
        if (overrode && (!out->overrode || overrode < out->overrode))
            out->overrode = overrode;
    }
    if (out->says == TNI_JUDGED_PREFERRED)
        out->rank = (int32_t)(out->rule - tni_rules_at(rules, 0));
}
