#include "context.h"

size_t tn_rule_count(const tn_context *context)
{
    return context ? tni_rules_count(context->rules) : 0;
}

tn_status tn_rule_at(const tn_context *context, size_t index, tn_rule *out, tn_error *err)
{
    static const char where[] = "tn_rule_at";
    if (!context)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "context is NULL; tn_context_capture returns the context of the thread");
    if (!out || !TN_HAS(out, tn_rule, selector))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       out ? "out->struct_size is too small" : "out is NULL");
    const tni_rule *rule = tni_rules_at(context->rules, index);
    if (!rule)
        return tn_fail(err, TN_NOT_FOUND, 0, where, "no rule %zu: there are %zu, numbered from 0",
                       index, tn_rule_count(context));
    out->strength = rule->strength;
    out->level = rule->level;
    out->setting = rule->setting;
    out->depth = rule->depth;
    out->selector = rule->text;
    return TN_OK;
}
