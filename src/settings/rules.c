#include "base/alloc.h"
#include "base/checked.h"
#include "base/references.h"
#include "context.h"

#include <stdatomic.h>

static const char where[] = "rules";

/* One allocation: this, the rules, then their texts. */
struct tni_rules {
    tni_references references;
    size_t count;
    size_t text_bytes;
    tni_rule items[];
};

static const char *const strengths[] = {
    [TN_PERMIT] = "permit", [TN_REQUIRE] = "require", [TN_PREFER] = "prefer",
    [TN_AVOID] = "avoid",   [TN_FORBID] = "forbid",
};

static bool is_strength(int32_t strength)
{
    return strength >= TN_PERMIT && strength <= TN_FORBID;
}

const char *tn_strength_name(int32_t strength)
{
    return is_strength(strength) ? strengths[strength] : "unknown";
}

tni_rules *tni_rules_retain(const tni_rules *rules)
{
    tni_rules *mine = (tni_rules *)(uintptr_t)rules;
    if (mine)
        tni_references_add(&mine->references);
    return mine;
}

void tni_rules_release(tni_rules *rules)
{
    if (rules && tni_references_drop(&rules->references))
        tni_release(rules);
}

size_t tni_rules_count(const tni_rules *rules)
{
    return rules ? rules->count : 0;
}

const tni_rule *tni_rules_at(const tni_rules *rules, size_t index)
{
    return index < tni_rules_count(rules) ? &rules->items[index] : NULL;
}

/* A list under construction. */
typedef struct draft {
    tni_rules *rules;
    char *texts;
    size_t first; /* first rule of the edited depth */
    size_t added; /* first new rule */
} draft;

static const char *put_text(draft *to, const char *text)
{
    size_t size = strlen(text) + 1;
    char *at = to->texts + to->rules->text_bytes;
    if (size == 1)
        return "";
    to->rules->text_bytes += size;
    return memcpy(at, text, size);
}

static void put_rule(draft *to, const tni_rule *rule)
{
    tni_rule *out = &to->rules->items[to->rules->count++];
    *out = *rule;
    out->text = put_text(to, rule->text);
    out->selector.op = put_text(to, rule->selector.op);
    out->selector.name = put_text(to, rule->selector.name);
}

static bool is_cleared(const tni_rule *rule, const tni_rules_edit *edit)
{
    if (rule->depth != edit->depth)
        return false;
    for (size_t i = 0; i < edit->clear_count; i++) {
        if (rule->setting == edit->clear[i])
            return true;
    }
    return false;
}

static size_t count_staying(const tni_rules *base, const tni_rules_edit *edit)
{
    size_t stay = 0;
    for (size_t i = 0; i < tni_rules_count(base); i++)
        stay += !is_cleared(&base->items[i], edit);
    return stay;
}

/* Upper bound of the bytes of all texts: the canonical form is not longer than the original, and
 * neither are op and name together. */
static bool measure_texts(const tni_rules *base, const tni_rules_edit *edit, size_t *out)
{
    size_t bytes = base ? base->text_bytes : 0, one;
    for (size_t i = 0; i < edit->add_count; i++) {
        const tni_rule_request *request = &edit->add[i];
        if (!tni_add_size(strlen(request->selector), request->prefix ? strlen(request->prefix) : 0,
                          &one) ||
            !tni_add_size(one, 1, &one) || !tni_mul_size(one, 2, &one) ||
            !tni_add_size(bytes, one, &bytes))
            return false;
    }
    *out = bytes;
    return true;
}

static tni_rules *allocate_rules(size_t count, size_t text_bytes)
{
    size_t bytes;
    if (!tni_mul_size(count, sizeof(tni_rule), &bytes) ||
        !tni_add_size(bytes, sizeof(tni_rules), &bytes) || !tni_add_size(bytes, text_bytes, &bytes))
        return NULL;
    tni_rules *rules = tni_alloc(bytes);
    if (!rules)
        return NULL;
    tni_references_init(&rules->references);
    rules->count = rules->text_bytes = 0;
    return rules;
}

/* The complete selector of a request. One that is too long is truncated, but remains too long to be
 * accepted. */
static void join_selector(const tni_rule_request *request, char out[TNI_SELECTOR_MAX + 1])
{
    size_t length = 0;
    for (const char *c = request->prefix; c && *c && length < TNI_SELECTOR_MAX; c++)
        out[length++] = *c;
    for (const char *c = request->selector; *c && length < TNI_SELECTOR_MAX; c++)
        out[length++] = *c;
    out[length] = '\0';
}

static bool are_same(const tni_rule *a, const tni_rule *b)
{
    return a->strength == b->strength && a->setting == b->setting && strcmp(a->text, b->text) == 0;
}

static const char *row_name(tn_setting setting)
{
    const tn_setting_facts *facts = tn_setting_info(setting);
    return facts ? facts->key : "unknown";
}

/* `a` is the earlier rule; `at_once`: both are from one edit. */
static tn_status reject_pair(const tni_rule *a, const tni_rule *b, bool at_once, const char *why,
                             tn_error *err)
{
    bool one_value = at_once && a->setting == b->setting;
    return tn_fail(err, TN_REFUSED, 0, where,
                   "expected rules that agree within %s%s, got %s:%s (%s) and %s:%s (%s): %s; "
                   "remove one of them",
                   one_value ? "one value" : "the level ", one_value ? "" : tn_level_name(b->level),
                   tn_strength_name(a->strength), a->text, row_name(a->setting),
                   tn_strength_name(b->strength), b->text, row_name(b->setting), why);
}

/* Whether `forbids` leaves nothing of what the other rule wants to run. */
static bool defeats(const tni_rule *forbids, const tni_rule *other)
{
    bool wants = other->strength == TN_REQUIRE ||
                 (other->strength == TN_PERMIT && other->setting == TN_SETTING_RULES);
    return forbids->strength == TN_FORBID && wants &&
           tni_selector_covers(&forbids->selector, &other->selector);
}

/* Returns why two different rules cannot both be of one depth; NULL if they can. A soft and a hard
 * rule of two settings can: a list of preferences may name what a switch forbids. */
static const char *contradiction_of(const tni_rule *a, const tni_rule *b)
{
    bool same = tni_selector_covers(&a->selector, &b->selector) &&
                tni_selector_covers(&b->selector, &a->selector);
    bool both_soft = (a->strength == TN_PREFER && b->strength == TN_AVOID) ||
                     (a->strength == TN_AVOID && b->strength == TN_PREFER);
    if (defeats(a, b) || defeats(b, a))
        return "they leave no candidate";
    if (same && a->strength != b->strength && (both_soft || a->setting == b->setting))
        return "a selector can have only one strength";
    return NULL;
}

/* Whether one candidate can match both selectors. Different kinds can always match, backends too:
 * a candidate has several of their names. */
static bool can_both_match(const tni_selector *a, const tni_selector *b)
{
    tni_selector one = *a, other = *b;
    one.op = other.op = "";
    return (a->op[0] && b->op[0] && strcmp(a->op, b->op) != 0) || a->kind != b->kind ||
           a->kind == TNI_SELECT_ANY || a->kind == TNI_SELECT_BACKEND ||
           tni_selector_covers(&one, &other) || tni_selector_covers(&other, &one);
}

/* Whether an alternative of `a` and one of `b` can both match. */
static bool can_both_hold(const draft *to, const tni_rule *a, const tni_rule *b)
{
    const tni_rule *end = to->rules->items + to->rules->count;
    bool found = can_both_match(&a->selector, &b->selector);
    for (const tni_rule *x = to->rules->items + to->first; x < end && !found; x++) {
        for (const tni_rule *y = to->rules->items + to->first;
             tni_rules_are_alternatives(x, a) && y < end && !found; y++)
            found = tni_rules_are_alternatives(y, b) && can_both_match(&x->selector, &y->selector);
    }
    return found;
}

/* Fails with TN_REFUSED if no candidate can match two required rules of the edited depth, at least
 * one of them new. */
static tn_status check_required(const draft *to, tn_error *err)
{
    for (size_t i = to->added; i < to->rules->count; i++) {
        const tni_rule *b = &to->rules->items[i];
        for (size_t j = to->first; j < i && b->strength == TN_REQUIRE; j++) {
            const tni_rule *a = &to->rules->items[j];
            if (a->strength == TN_REQUIRE && !tni_rules_are_alternatives(a, b) &&
                !can_both_hold(to, a, b))
                return reject_pair(a, b, j >= to->added, "no candidate is both", err);
        }
    }
    return TN_OK;
}

static tn_status check_strength(const tni_rule_request *request, tn_error *err)
{
    if (is_strength(request->strength))
        return TN_OK;
    return tn_fail(
        err, TN_INVALID_ARGUMENT, 0, where,
        "%s: unknown strength %d: expected permit (%d), require (%d), prefer (%d), avoid (%d) "
        "or forbid (%d)",
        row_name(request->setting), (int)request->strength, TN_PERMIT, TN_REQUIRE, TN_PREFER,
        TN_AVOID, TN_FORBID);
}

static tn_status add_rule(draft *to, const tni_rules_edit *edit, const tni_rule_request *request,
                          tn_error *err)
{
    char text[TNI_SELECTOR_MAX + 1], room[TNI_SELECTOR_MAX];
    tni_rule rule = {.text = text,
                     .strength = request->strength,
                     .level = edit->level,
                     .depth = edit->depth,
                     .setting = request->setting};
    tn_status status = check_strength(request, err);
    if (status)
        return status;
    join_selector(request, text);
    status = tni_selector_parse(text, room, &rule.selector, err);
    if (status)
        return status;
    (void)tni_selector_write(&rule.selector, text, sizeof text);
    for (size_t i = to->first; i < to->rules->count; i++) {
        if (are_same(&to->rules->items[i], &rule))
            return TN_OK;
        const char *why = contradiction_of(&to->rules->items[i], &rule);
        if (why)
            return reject_pair(&to->rules->items[i], &rule, i >= to->added, why, err);
    }
    if (to->rules->count - to->first >= TNI_RULES_MOST)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "the level %s already has %d rules, the maximum; cannot add %s:%s",
                       tn_level_name(edit->level), TNI_RULES_MOST, tn_strength_name(rule.strength),
                       text);
    put_rule(to, &rule);
    return TN_OK;
}

/* Nearest first: rules nearer than the edit, the remaining ones of its depth, the added ones, the
 * rest. */
static tn_status write_list(draft *to, const tni_rules *base, const tni_rules_edit *edit,
                            tn_error *err)
{
    size_t i = 0, count = tni_rules_count(base);
    for (; i < count && base->items[i].depth > edit->depth; i++)
        put_rule(to, &base->items[i]);
    to->first = i;
    for (; i < count && base->items[i].depth == edit->depth; i++) {
        if (!is_cleared(&base->items[i], edit))
            put_rule(to, &base->items[i]);
    }
    to->added = to->rules->count;
    for (size_t k = 0; k < edit->add_count; k++) {
        tn_status status = add_rule(to, edit, &edit->add[k], err);
        if (status)
            return status;
    }
    tn_status status = check_required(to, err);
    for (; i < count && !status; i++)
        put_rule(to, &base->items[i]);
    return status;
}

/* Depends on the previous rule of the same setting, which must be marked already. */
static bool is_shadowed(const tni_rules *rules, size_t index)
{
    const tni_rule *rule = &rules->items[index];
    for (size_t i = rule->setting == TN_SETTING_RULES ? 0 : index; i-- > 0;) {
        const tni_rule *before = &rules->items[i];
        if (before->setting == rule->setting)
            return before->depth != rule->depth || before->shadowed;
    }
    return false;
}

tn_status tni_rules_derive(const tni_rules *base, const tni_rules_edit *edit, tni_rules **out,
                           tn_error *err)
{
    size_t stay = count_staying(base, edit), text_bytes, most;
    draft to = {0};
    if (edit->add_count == 0 && (stay == 0 || stay == base->count)) {
        *out = stay == 0 ? NULL : tni_rules_retain(base);
        return TN_OK;
    }
    if (!tni_add_size(stay, edit->add_count, &most) || !measure_texts(base, edit, &text_bytes))
        return tni_no_memory(err, where, "the rules");
    to.rules = allocate_rules(most, text_bytes);
    if (!to.rules)
        return tni_no_memory(err, where, "the rules");
    to.texts = (char *)&to.rules->items[most];
    tn_status status = write_list(&to, base, edit, err);
    if (status) {
        tni_rules_release(to.rules);
        return status;
    }
    for (size_t i = 0; i < to.rules->count; i++)
        to.rules->items[i].shadowed = is_shadowed(to.rules, i);
    *out = to.rules;
    return TN_OK;
}

size_t tn_rule_count(const tn_context *context)
{
    return context ? tni_rules_count(context->rules) : 0;
}

tn_status tn_rule_at(const tn_context *context, size_t index, tn_rule *out, tn_error *err)
{
    static const char here[] = "tn_rule_at";
    if (!context)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, here,
                       "context is NULL; tn_context_capture returns the context of the thread");
    if (!out || !TN_HAS(out, tn_rule, selector))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, here, "%s",
                       out ? "out->struct_size is too small" : "out is NULL");
    const tni_rule *rule = tni_rules_at(context->rules, index);
    if (!rule)
        return tn_fail(err, TN_NOT_FOUND, 0, here, "no rule %zu: there are %zu, numbered from 0",
                       index, tn_rule_count(context));
    out->strength = rule->strength;
    out->level = rule->level;
    out->setting = rule->setting;
    out->depth = rule->depth;
    out->selector = rule->text;
    return TN_OK;
}
