#include "rules.h"

#include <stdbool.h>
#include <tenon/tenon.h>

/* Whether an earlier rule (with another level or strength) of the same setting has the same
 * selector. */
static bool is_repeated_rule(const tn_context *context, size_t index, const tn_rule *rule)
{
    tn_rule other = {.struct_size = sizeof other};
    for (size_t i = 0; i < index && !tn_rule_at(context, i, &other, NULL); i++) {
        if (other.setting == rule->setting && strcmp(other.selector, rule->selector) == 0)
            return true;
    }
    return false;
}

void rules_find_unknown(rules_tell *tell, void *to)
{
    tn_context *context = NULL;
    tn_rule rule = {.struct_size = sizeof rule};
    tn_error err;
    char text[sizeof err.message + 64];
    if (tn_context_capture(&context, NULL))
        return;
    for (size_t i = 0; !tn_rule_at(context, i, &rule, NULL); i++) {
        if (is_repeated_rule(context, i, &rule) ||
            tn_selector_check(rule.selector, &err) != TN_NOT_FOUND)
            continue;
        snprintf(text, sizeof text, "%s: %s", tn_setting_info(rule.setting)->key, err.message);
        tell(to, text);
    }
    tn_context_release(context);
}

static void print_problem(void *to, const char *text)
{
    (void)to;
    fprintf(stderr, "tenon: settings: %s\n", text);
}

void rules_say_unknown(void)
{
    rules_find_unknown(print_problem, NULL);
}
