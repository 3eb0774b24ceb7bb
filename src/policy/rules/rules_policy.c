/* The rules of the context, as a policy: who may run, and in which order. */
#include "rules_policy.h"

#include "dispatch/judge.h"
#include "dispatch/policy.h"
#include "settings/context.h"
#include "settings/table.h"

/* A setting's rules that the op itself replaces are left out. */
static void judge_candidate(const tni_question *question, tni_contender *to)
{
    tni_rules_judge_but(question->context->rules, &to->kernel->names, tni_op_replaces(question->op),
                        &to->judged);
}

bool tni_rules_permit(const tni_judgement *judged, tn_refusal *why)
{
    if (tni_judged_may_run(judged))
        return true;
    const tni_rule *rule = judged->rule;
    const tni_setting_row *row = tni_setting_row_of(rule->setting);
    const char *const off[] = {row->facts.key, " is off, set by the ", tn_level_name(rule->level),
                               NULL};
    if (row->kind == TN_VALUE_BOOL)
        return tni_refuse_words(why, TN_REFUSE_RULE, "switch", off);
    bool forbidden = judged->says == TNI_JUDGED_FORBIDDEN;
    bool by_switch = forbidden && rule->setting != TN_SETTING_RULES;
    const char *const words[] = {forbidden ? "it is forbidden" : "another one is required",
                                 " by the rule ",
                                 tn_strength_name(rule->strength),
                                 ":",
                                 rule->text,
                                 " of the ",
                                 tn_level_name(rule->level),
                                 by_switch ? ", set by " : "",
                                 by_switch ? row->facts.key : "",
                                 NULL};
    return tni_refuse_words(why, TN_REFUSE_RULE, forbidden ? "forbid" : "require", words);
}

static bool permit_candidate(const tni_question *question, tni_contender *to)
{
    (void)question;
    return tni_rules_permit(&to->judged, &to->why);
}

static bool asks_for_candidate(const tni_question *question, const tni_contender *candidate)
{
    (void)question;
    return candidate->judged.says == TNI_JUDGED_REQUIRED;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = tni_hash_mix(hash, (unsigned char)*text);
    return tni_hash_mix(hash, 256);
}

/* Mixes in the rules that can apply to an op of the group. The setting that wrote a rule matters,
 * because one may replace another's. */
static uint64_t mix_rules(uint64_t hash, const tn_context *context, int32_t group)
{
    size_t count = tni_rules_count(context->rules);
    for (size_t i = 0; i < count; i++) {
        const tni_rule *rule = tni_rules_at(context->rules, i);
        const tni_op_class *of = rule->selector.op[0] ? tni_op_class_find(rule->selector.op) : NULL;
        if (rule->selector.op[0] && (!of || of->group != group))
            continue;
        hash = mix_text(hash, rule->text);
        hash = tni_hash_mix(hash, (uint64_t)rule->strength << 32 | (uint32_t)rule->depth);
        hash = tni_hash_mix(hash, (uint64_t)rule->setting << 1 | rule->shadowed);
    }
    return hash;
}

static uint64_t mix_context(uint64_t hash, const tn_context *context, const tni_op_class *class)
{
    return mix_rules(hash, context, class->group);
}

const tni_policy tni_rules_policy = {.name = "rules",
                                     .key = mix_context,
                                     .judge = judge_candidate,
                                     .permit = permit_candidate,
                                     .asks_for = asks_for_candidate};
