#include "rules.h"

static const int32_t says[] = {
    [TN_PERMIT] = TNI_JUDGED_FREE,      [TN_REQUIRE] = TNI_JUDGED_REQUIRED,
    [TN_PREFER] = TNI_JUDGED_PREFERRED, [TN_AVOID] = TNI_JUDGED_AVOIDED,
    [TN_FORBID] = TNI_JUDGED_FORBIDDEN,
};

/* If several verdicts apply to one candidate, the one with the largest weight wins. */
static const int32_t weights[] = {
    [TNI_JUDGED_FREE] = 0,     [TNI_JUDGED_PREFERRED] = 1,   [TNI_JUDGED_AVOIDED] = 2,
    [TNI_JUDGED_REQUIRED] = 3, [TNI_JUDGED_PASSED_OVER] = 4, [TNI_JUDGED_FORBIDDEN] = 5,
};

/* One independent judgement: a candidate, by one kind of selector, by hard or by soft rules. */
typedef struct question {
    const tni_rules *rules;
    const tni_candidate *candidate;
    int32_t kind;
    bool soft;
    tn_setting but; /* setting whose rules are ignored; -1: none */
} question;

/* Of rules with the same verdict, the first in the list is reported. */
static void weigh_rule(const tni_rule *rule, int32_t says_it, tni_judgement *out)
{
    if (out->rule && weights[says_it] < weights[out->says])
        return;
    if (out->rule && says_it == out->says && rule > out->rule)
        return;
    out->says = says_it;
    out->rule = rule;
}

/* Only permits of TN_SETTING_RULES count. Other settings write permits only to shadow their own
 * farther values. */
static bool is_explicit_permit(const tni_rule *rule)
{
    return rule->strength == TN_PERMIT && rule->setting == TN_SETTING_RULES;
}

static bool is_soft(const tni_rule *rule)
{
    return rule->strength == TN_PREFER || rule->strength == TN_AVOID;
}

bool tni_rule_is_of_members(const tni_rule *rule)
{
    return rule->setting >= TN_SETTING_CUDA_FLASH_SDP &&
           rule->setting <= TN_SETTING_CUDA_SDP_PRIORITY;
}

/* Members are a separate kind: a request for a backend says nothing about them. */
static int32_t kind_of(const tni_rule *rule)
{
    return tni_rule_is_of_members(rule) ? TNI_SELECT_MEMBER : rule->selector.kind;
}

/* Whether a rule applies to the question. A bare name applies to every kind; to its own kind
 * (TNI_SELECT_ANY) only as a requirement. To members, bare names and backends apply only as
 * permits. */
static bool applies_to(const tni_rule *rule, const question *q)
{
    int32_t kind = kind_of(rule);
    if (rule->setting == q->but)
        return false;
    if (rule->strength == TN_PERMIT ? !is_explicit_permit(rule) : is_soft(rule) != q->soft)
        return false;
    if (q->kind == TNI_SELECT_ANY)
        return kind == TNI_SELECT_ANY && rule->strength == TN_REQUIRE;
    if (q->kind == TNI_SELECT_MEMBER && (kind == TNI_SELECT_BACKEND || kind == TNI_SELECT_ANY))
        return rule->strength == TN_PERMIT;
    return kind == q->kind || kind == TNI_SELECT_ANY;
}

static bool matches_by(const tni_rule *rule, const question *q)
{
    tni_selector selector = rule->selector;
    selector.kind = q->kind;
    return tni_selector_matches(&selector, q->candidate);
}

/* Whether one of the first `nearer` rules permits everything that `rule` can match. */
static bool is_overruled(const tni_rules *rules, size_t nearer, const tni_rule *rule)
{
    for (size_t i = 0; i < nearer; i++) {
        const tni_rule *other = tni_rules_at(rules, i);
        if (is_explicit_permit(other) && tni_selector_covers(&other->selector, &rule->selector))
            return true;
    }
    return false;
}

static size_t depth_end(const tni_rules *rules, size_t begin)
{
    size_t end = begin;
    while (end < tni_rules_count(rules) &&
           tni_rules_at(rules, end)->depth == tni_rules_at(rules, begin)->depth)
        end++;
    return end;
}

/* Evaluates the rules of the depth that begins at `begin`, with or without the shadowed ones.
 * out->rule is NULL if none applies. */
static void judge_depth(const question *q, size_t begin, bool shadowed, tni_judgement *out)
{
    const tni_rule *required = NULL;
    size_t end = depth_end(q->rules, begin);
    bool met = false;
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (size_t i = begin; i < end; i++) {
        const tni_rule *rule = tni_rules_at(q->rules, i);
        if (!applies_to(rule, q) || (rule->shadowed && !shadowed))
            continue;
        bool matches = matches_by(rule, q);
        if (matches)
            weigh_rule(rule, says[rule->strength], out);
        if (rule->strength != TN_REQUIRE || kind_of(rule) != q->kind)
            continue;
        met = met || matches;
        if (!required && tni_selector_speaks_of(&rule->selector, q->candidate) &&
            !is_overruled(q->rules, begin, rule))
            required = rule;
    }
    if (required && !met)
        weigh_rule(required, TNI_JUDGED_PASSED_OVER, out);
}

/* Early exit: to most questions no rule applies. */
static bool concerns_anyone(const question *q)
{
    size_t count = tni_rules_count(q->rules), i = 0;
    while (i < count && !applies_to(tni_rules_at(q->rules, i), q))
        i++;
    return i < count;
}

static void judge_kind(const question *q, tni_judgement *out)
{
    size_t count = tni_rules_count(q->rules);
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    if (!concerns_anyone(q))
        return;
    for (size_t i = 0; i < count && !out->rule; i = depth_end(q->rules, i))
        judge_depth(q, i, false, out);
    for (size_t i = 0; i < count && !out->overrode; i = depth_end(q->rules, i)) {
        tni_judgement here;
        judge_depth(q, i, true, &here);
        if (here.rule && here.says != out->says)
            out->overrode = here.rule;
    }
}

/* Sets the rank to the index of the nearest rule that prefers the candidate other than as a member,
 * or of `nearest` if none exists. */
static void rank_rules(const tni_rules *rules, const tni_judgement *by, const tni_rule *nearest,
                       tni_judgement *out)
{
    const tni_rule *first = tni_rules_at(rules, 0), *wished = NULL;
    const tni_judgement *member = &by[2 * TNI_SELECT_MEMBER + 1];
    for (int32_t i = 1; i < 2 * TNI_SELECT_MEMBER; i += 2) {
        if (by[i].says == TNI_JUDGED_PREFERRED && (!wished || by[i].rule < wished))
            wished = by[i].rule;
    }
    out->wished = wished != NULL;
    out->rank = (int32_t)((wished ? wished : nearest) - first);
    out->member_rank =
        member->says == TNI_JUDGED_PREFERRED ? (int32_t)(member->rule - first) : INT32_MAX;
}

void tni_rules_judge(const tni_rules *rules, const tni_candidate *candidate, tni_judgement *out)
{
    tni_rules_judge_but(rules, candidate, -1, out);
}

void tni_rules_judge_but(const tni_rules *rules, const tni_candidate *candidate, tn_setting but,
                         tni_judgement *out)
{
    enum { QUESTIONS = 2 * TNI_SELECT_COUNT };
    tni_judgement by[QUESTIONS], order = {.says = TNI_JUDGED_FREE};
    *out = (tni_judgement){.says = TNI_JUDGED_FREE};
    for (int32_t i = 0; i < QUESTIONS; i++) {
        const question q = {rules, candidate, i / 2, i % 2, but};
        judge_kind(&q, &by[i]);
        bool counts = q.kind != TNI_SELECT_ANY || by[i].says == TNI_JUDGED_PASSED_OVER;
        if (!by[i].rule || !counts)
            continue;
        weigh_rule(by[i].rule, by[i].says, out);
        if (q.soft)
            weigh_rule(by[i].rule, by[i].says, &order);
    }
    for (int32_t i = 0; i < QUESTIONS; i++) {
        const tni_rule *overrode = by[i].rule == out->rule ? by[i].overrode : NULL;
        if (overrode && (!out->overrode || overrode < out->overrode))
            out->overrode = overrode;
    }
    out->order = order.says;
    out->member_rank = INT32_MAX;
    if (order.says == TNI_JUDGED_PREFERRED)
        rank_rules(rules, by, order.rule, out);
}
