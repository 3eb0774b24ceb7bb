#include "context.h"

#include "base/alloc.h"
#include "os/thread.h"
#include "views.h"

static tn_context defaults = {.references = {1}};
static tni_once made = TNI_ONCE_INIT;

static void make_defaults(void)
{
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++)
        defaults.value[i] = tni_setting_row_of(i)->standard;
}

const tn_context *tni_context_defaults(void)
{
    tni_once_run(&made, make_defaults);
    return &defaults;
}

tn_context *tn_context_retain(tn_context *context)
{
    if (context)
        tni_references_add(&context->references);
    return context;
}

void tn_context_release(tn_context *context)
{
    if (!context || !tni_references_drop(&context->references))
        return;
    tni_rules_release(context->rules);
    tni_release(context);
}

/* Copies all but the rules: those are borrowed from `from`, without a reference. */
static tn_context *copy_context(const tn_context *from, int32_t depth)
{
    tn_context *made_one = tni_alloc(sizeof *made_one);
    if (!made_one)
        return NULL;
    tni_references_init(&made_one->references);
    made_one->rules = from->rules;
    made_one->next = NULL;
    made_one->depth = depth > from->depth ? depth : from->depth;
    memcpy(made_one->level, from->level, sizeof made_one->level);
    memcpy(made_one->value, from->value, sizeof made_one->value);
    for (int32_t i = 0; i < TNI_CONTEXT_NOTES; i++)
        atomic_init(&made_one->notes[i], 0);
    return made_one;
}

static void set_value(tn_context *context, const tni_setting_row *row, const tn_change *change,
                      int32_t level)
{
    int64_t value = row->kind < TN_VALUE_ORDER ? change->value : 0;
    if (row->kind == TN_VALUE_ORDER)
        (void)tni_order_parse(row, change->text, &value, "", NULL); /* already validated */
    context->value[change->setting] = value;
    context->level[change->setting] = (uint8_t)level;
}

/* Applies one change, or those that a view expands to. Sets *out_rules to true if the change writes
 * rules. */
static tn_status apply_change(tn_context *context, const tn_change *change, int32_t level,
                              const char *where, bool *out_rules, tn_error *err)
{
    tn_change rows[TNI_VIEW_MOST];
    tn_status status = tni_change_check(change, where, err);
    if (status)
        return status;
    const tni_setting_row *row = tni_setting_row_of(change->setting);
    if (row->facts.process_only && level > TN_LEVEL_PROCESS)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "%s is set for the whole process; a %s cannot change it", row->facts.key,
                       tn_level_name(level));
    size_t count = tni_change_rows(change, rows);
    for (size_t i = 0; i < count; i++)
        set_value(context, tni_setting_row_of(rows[i].setting), &rows[i], level);
    *out_rules = *out_rules || tni_setting_rules(change->setting);
    return TN_OK;
}

static tn_status derive_rules(const tn_context *from, const tn_change *changes, size_t count,
                              int32_t level, int32_t depth, const char *where, tni_rules **out,
                              tn_error *err)
{
    tni_rule_requests *requests = tni_alloc(sizeof *requests);
    tn_status status = TN_OK;
    if (!requests)
        return tni_no_memory(err, where, "rules");
    requests->count = requests->clear_count = requests->used = 0;
    for (size_t i = 0; i < count && !status; i++) {
        if (tni_setting_rules(changes[i].setting))
            status = tni_rule_requests_add(requests, &changes[i], where, err);
    }
    if (!status) {
        const tni_rules_edit edit = {
            level, depth, requests->clear, requests->clear_count, requests->items, requests->count};
        status = tni_rules_derive(from->rules, &edit, out, err);
    }
    tni_release(requests);
    return status;
}

/* Checks whether the rules of a validated change can be made over the defaults. */
static tn_status try_rules(const tn_change *change, const char *where, tn_error *err)
{
    tni_rules *rules = NULL;
    if (tni_setting_row_of(change->setting)->kind < TN_VALUE_RULE)
        return TN_OK;
    tn_status status = derive_rules(tni_context_defaults(), change, 1, TN_LEVEL_CALL,
                                    TNI_DEPTH_PROCESS, where, &rules, err);
    tni_rules_release(rules);
    return status;
}

tn_status tn_setting_parse(const char *text, tn_change *out, tn_error *err)
{
    static const char where[] = "tn_setting_parse";
    char key[128];
    tn_change change;
    const char *equals = text ? strchr(text, '=') : NULL;
    if (!text || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", text ? "out" : "the text");
    if (!equals)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "expected key=value, got \"%.80s\"",
                       text);
    if (!tni_text_trim(text, equals, key, sizeof key))
        return tni_setting_unknown(text, where, err);
    tn_setting setting = tni_setting_find(key);
    if (setting < 0)
        return tni_setting_unknown(key, where, err);
    const char *value = equals + 1 + strspn(equals + 1, " \t");
    tn_status status = tni_value_parse(setting, value, &change, where, err);
    if (!status)
        status = try_rules(&change, where, err);
    if (!status)
        *out = change;
    return status;
}

tn_status tni_context_change(const tn_context *from, const tn_change *changes, size_t count,
                             int32_t level, int32_t depth, const char *where, tn_context **out,
                             tn_error *err)
{
    tni_rules *rules = NULL;
    bool writes = false;
    tn_status status = TN_OK;
    if (count > 0 && !changes)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "changes is NULL, but count is %zu",
                       count);
    tn_context *made_one = copy_context(from, depth);
    if (!made_one)
        return tni_no_memory(err, where, "a context");
    for (size_t i = 0; i < count && !status; i++)
        status = apply_change(made_one, &changes[i], level, where, &writes, err);
    if (!status && writes)
        status = derive_rules(from, changes, count, level, depth, where, &rules, err);
    if (status) {
        tni_release(made_one);
        return status;
    }
    made_one->rules = writes ? rules : tni_rules_retain(from->rules);
    *out = made_one;
    return TN_OK;
}

tn_status tni_context_restore(const tn_context *from, const tn_context *base, tn_setting setting,
                              int32_t depth, const char *where, tn_context **out, tn_error *err)
{
    const tni_rules_edit edit = {TN_LEVEL_PROCESS, depth, &setting, 1, NULL, 0};
    const tn_change change = {.setting = setting};
    tn_change rows[TNI_VIEW_MOST];
    tni_rules *rules = NULL;
    tn_status status = tni_rules_derive(from->rules, &edit, &rules, err);
    if (status)
        return status;
    tn_context *made_one = copy_context(from, depth);
    if (!made_one) {
        tni_rules_release(rules);
        return tni_no_memory(err, where, "a context");
    }
    made_one->rules = rules;
    size_t count = tni_change_rows(&change, rows);
    for (size_t i = 0; i < count; i++) {
        made_one->value[rows[i].setting] = base->value[rows[i].setting];
        made_one->level[rows[i].setting] = base->level[rows[i].setting];
    }
    *out = made_one;
    return TN_OK;
}
