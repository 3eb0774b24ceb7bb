/* Counts fallbacks when a plan is made. */
#include "base/log.h"
#include "declined.h"
#include "os/fork.h"
#include "os/thread.h"
#include "plan.h"
#include "settings/context.h"

static struct {
    tni_fork_lock lock;
    tn_fallbacks counts;
} fallen = {.lock = {TNI_FORK_LOCK_INIT}};

/* Returns whether `refused` would have sorted before `chosen`, had it not been refused. */
static bool was_first(const tni_contender *refused, const tni_contender *chosen)
{
    return refused->why.code != TN_REFUSE_NONE && refused->predicted_us < chosen->predicted_us;
}

/* Whether a rule can apply to kernels for the question, and not only to those of another
 * platform. */
static bool rule_applies(const tni_rule *rule, const tni_question *question,
                         const tni_contender *chosen)
{
    const char *platform = question->device->platform->name, *name = rule->selector.name;
    const tn_library *library = NULL;
    if (!tni_selector_speaks_of(&rule->selector, &chosen->kernel->names))
        return false;
    switch (rule->selector.kind) {
    case TNI_SELECT_KERNEL: {
        size_t length = strcspn(name, ".");
        return strlen(platform) == length && strncmp(platform, name, length) == 0;
    }
    case TNI_SELECT_LIBRARY:
        return tn_library_get(name, &library, NULL) != TN_OK || !library->known ||
               !library->known->platform[0] || strcmp(library->known->platform, platform) == 0;
    case TNI_SELECT_PLATFORM: return false;
    default: return true;
    }
}

/* The nearest preference that applies is unmet if `chosen` does not match it, nor another preference
 * of the same setting: those are alternatives. */
const tni_rule *tni_fallback_unmet(const tni_question *question, const tni_contender *chosen)
{
    const tni_rules *rules = question->context->rules;
    const tn_setting ignored = tni_op_replaces(question->op);
    const tni_rule *unmet = NULL;
    for (size_t i = 0; i < tni_rules_count(rules) && !question->only; i++) {
        const tni_rule *rule = tni_rules_at(rules, i);
        if (rule->strength != TN_PREFER || rule->shadowed || rule->setting == ignored)
            continue;
        bool met = tni_selector_matches(&rule->selector, &chosen->kernel->names);
        if (met && (!unmet || unmet->setting == rule->setting))
            return NULL;
        if (!met && !unmet && rule_applies(rule, question, chosen))
            unmet = rule;
    }
    return unmet;
}

static void count_contender(const tni_question *question, const tni_contender *v,
                            const tni_contender *chosen, tn_fallbacks *out)
{
    int32_t code = v->why.code;
    if (code == TN_REFUSE_NONE)
        return;
    bool preferred = v->judged.order == TNI_JUDGED_PREFERRED &&
                     tni_rules_compare(question->context->rules, &v->kernel->names,
                                       &chosen->kernel->names, tni_op_replaces(question->op)) < 0;
    out->preferred |= preferred;
    if (!preferred && !was_first(v, chosen))
        return;
    out->unavailable |= code == TN_REFUSE_LIBRARY || code == TN_REFUSE_DEVICE ||
                        code == TN_REFUSE_BUSY || tni_is_declined(&v->why);
    out->quarantined |= code == TN_REFUSE_QUARANTINE || code == TN_REFUSE_KNOWN_BAD;
}

/* Sets each counter to 0 or 1 for one choice. */
static void count_choice(const tni_question *question, const tni_choice *choice, size_t chosen,
                         tn_fallbacks *out)
{
    const tni_contender *taken = &choice->candidates[chosen];
    *out = (tn_fallbacks){.avoided = taken->judged.order == TNI_JUDGED_AVOIDED,
                          .preferred = tni_fallback_unmet(question, taken) != NULL};
    for (size_t i = 0; i < choice->count; i++) {
        if (i != chosen)
            count_contender(question, &choice->candidates[i], taken, out);
    }
    out->reference = taken->kernel->reference && choice->count > 1 && !question->only;
}

void tni_fallback_count(const tni_question *question, const tni_choice *choice, size_t chosen)
{
    const tni_kernel *kernel = choice->candidates[chosen].kernel;
    tn_fallbacks found;
    tni_buffer text = {0};
    count_choice(question, choice, chosen, &found);
    if (!(found.preferred | found.avoided | found.unavailable | found.quarantined |
          found.reference))
        return;
    tni_problem_write(question->op, question->device->id, &text);
    tni_fork_lock_acquire(&fallen.lock);
    fallen.counts.preferred += found.preferred;
    fallen.counts.avoided += found.avoided;
    fallen.counts.unavailable += found.unavailable;
    fallen.counts.quarantined += found.quarantined;
    fallen.counts.reference += found.reference;
    snprintf(fallen.counts.last, sizeof fallen.counts.last, "%s is computed by %s",
             tni_buffer_text(&text), kernel->row->name);
    tni_fork_lock_release(&fallen.lock);
    tni_log(TN_LOG_INFO, "fell back: %s is computed by %s", tni_buffer_text(&text),
            kernel->row->name);
    tni_buffer_release(&text);
}

tn_status tn_fallbacks_get(tn_fallbacks *out, tn_error *err)
{
    if (!out || !TN_HAS(out, tn_fallbacks, last))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_fallbacks_get",
                       "out is NULL, or its struct_size is too small");
    size_t size = out->struct_size;
    tni_fork_lock_acquire(&fallen.lock);
    *out = fallen.counts;
    tni_fork_lock_release(&fallen.lock);
    out->struct_size = size;
    return TN_OK;
}

void tn_fallbacks_reset(void)
{
    tni_fork_lock_acquire(&fallen.lock);
    fallen.counts = (tn_fallbacks){0};
    tni_fork_lock_release(&fallen.lock);
}
