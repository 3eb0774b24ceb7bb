#include "wish.h"

#include "base/words.h"
#include "dispatch/judge.h"
#include "names.h"
#include "settings/context.h"

static const char where[] = "attention.backend";
static const char none_at_all[] = "no_attention";

void tni_backend_wished(const tn_context *context, tni_backend_wish *out)
{
    *out = (tni_backend_wish){.strength = TN_PERMIT};
    for (size_t i = 0; i < tni_rules_count(context->rules); i++) {
        const tni_rule *rule = tni_rules_at(context->rules, i);
        if (rule->setting != TN_SETTING_ATTENTION_BACKEND || rule->shadowed ||
            rule->strength == TN_PERMIT || out->count == TNI_WISHED_MOST)
            continue;
        out->strength = rule->strength;
        out->level = rule->level;
        if (!rule->selector.open)
            out->names[out->count++] = rule->selector.name;
    }
}

bool tni_backend_wishes_none(const tni_backend_wish *wish)
{
    return wish->strength == TN_REQUIRE && wish->count == 1 &&
           strcmp(wish->names[0], none_at_all) == 0;
}

static bool is_attention(const tni_question *question)
{
    return tni_op_class_of(question->op->kind)->group == TNI_OPS_ATTENTION;
}

/* Where attention.backend is said: "environment: TENON_ATTENTION_BACKEND". */
static void tell_origin(const tn_context *context, tn_origin *out)
{
    *out = (tn_origin){.struct_size = sizeof *out};
    (void)tn_setting_origin(context, TN_SETTING_ATTENTION_BACKEND, out, NULL);
}

tn_status tni_attention_check(const tni_question *question, tn_error *err)
{
    tni_backend_wish wish;
    if (question->only || !is_attention(question))
        return TN_OK;
    tni_backend_wished(question->context, &wish);
    for (size_t i = 0; i < wish.count; i++) {
        if (strcmp(wish.names[i], none_at_all) == 0 && !tni_backend_wishes_none(&wish))
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                           "attention.backend: NO_ATTENTION stands alone, and is required");
        if (!tni_backend_is_known(wish.names[i]))
            return tni_backend_unknown(wish.names[i], where, err);
    }
    return TN_OK;
}

bool tni_attention_permits(const tni_question *question, tn_refusal *why)
{
    tni_backend_wish wish;
    tn_origin origin;
    if (!is_attention(question))
        return true;
    tni_backend_wished(question->context, &wish);
    if (!tni_backend_wishes_none(&wish))
        return true;
    tell_origin(question->context, &origin);
    return tni_refuse(why, TN_REFUSE_RULE, "NO_ATTENTION", 1, 0,
                      "attention.backend is NO_ATTENTION (%.120s)", origin.text);
}

static bool has_kernel(const tni_choice *choice, const char *name)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (tni_backend_is(&choice->candidates[i].kernel->names, name))
            return true;
    }
    return false;
}

/* The numbered names that kernels here go by: "FLASH_ATTN, TORCH_SDPA". */
static void list_present(const tni_choice *choice, char *out, size_t size)
{
    const char *names[TN_BACKEND_COUNT];
    size_t count = 0;
    for (int32_t i = 1; i < TN_BACKEND_COUNT; i++) {
        if (has_kernel(choice, tni_backend_facts_of(i)->name))
            names[count++] = tni_backend_facts_of(i)->name;
    }
    tni_words_join(names, count, out, size);
}

tn_status tni_attention_refused(const tni_question *question, const tni_choice *choice,
                                tn_error *err)
{
    tni_backend_wish wish;
    tn_origin origin;
    char present[128];
    tni_buffer text = {0};
    tn_status status = TN_OK;
    if (question->only || !is_attention(question))
        return TN_OK;
    tni_backend_wished(question->context, &wish);
    tell_origin(question->context, &origin);
    tni_problem_write(question->op, question->device->id, &text);
    bool missing = wish.strength == TN_REQUIRE && wish.count > 0 &&
                   question->op->kind != TN_OP_ATTENTION_MERGE;
    for (size_t i = 0; i < wish.count; i++)
        missing = missing && !has_kernel(choice, wish.names[i]);
    list_present(choice, present, sizeof present);
    if (tni_backend_wishes_none(&wish))
        status = tn_fail(err, TN_REFUSED, 0, where,
                         "no attention may run, as attention.backend is NO_ATTENTION (%.100s); "
                         "%.200s",
                         origin.text, tni_buffer_text(&text));
    else if (missing)
        status = tn_fail(err, TN_UNSUPPORTED, 0, where,
                         "no kernel on %s yet that goes by %s, which attention.backend requires "
                         "(%.100s); those there are: %s; %.200s",
                         question->device->platform->name, tni_backend_spelling(wish.names[0]),
                         origin.text, present[0] ? present : "none", tni_buffer_text(&text));
    tni_buffer_release(&text);
    return status;
}
