/* Settings that stand for others: the precision hierarchy and its older switches, and the switches
 * that write rules. */
#ifndef TNI_SETTINGS_VIEWS_H
#define TNI_SETTINGS_VIEWS_H

#include "context.h"
#include "table.h"

/* The effective precision of `setting` in `context`, and which setting provides it: -1 if none does
 * and the op's default applies. Never TN_FP32_NONE. `setting` must be a precision setting. */
int32_t tni_precision_resolve(const tn_context *context, tn_setting setting, tn_setting *out_from);

/* Whether a setting is one of precision, which may inherit. */
bool tni_precision_is(tn_setting setting);

/* Reads a view; *out_behind is the first setting that it reads from. */
int64_t tni_view_read(const tn_context *context, tn_setting view, tn_setting *out_behind);

/* Expands writing `value` through a view into changes: at most TNI_VIEW_MOST. Returns their
 * count. */
enum { TNI_VIEW_MOST = 2 };
size_t tni_view_write(tn_setting view, int64_t value, tn_change out[TNI_VIEW_MOST]);

/* The libraries that the rules of a setting with few values are about. Returns their count. */
enum { TNI_SETTING_LIBRARIES_MOST = 8 };
size_t tni_setting_libraries(tn_setting setting, const char *out[TNI_SETTING_LIBRARIES_MOST]);

/* The settings that a change sets: its own, or those of its view. Returns their count. */
size_t tni_change_rows(const tn_change *change, tn_change out[TNI_VIEW_MOST]);

/* The rules that changes expand to, collected before a list is derived. */
enum { TNI_RULE_REQUESTS_MOST = 256 };
typedef struct tni_rule_requests {
    tni_rule_request items[TNI_RULE_REQUESTS_MOST];
    size_t count;
    tn_setting clear[TN_SETTING_COUNT];
    size_t clear_count;
    char text[8192]; /* storage of selectors cut out of longer texts */
    size_t used;
} tni_rule_requests;

/* Whether changes of `setting` write rules. */
bool tni_setting_rules(tn_setting setting);

/* Adds the rules that `change` expands to. Earlier rules of its setting will be cleared, unless the
 * change adds one rule. Fails with TN_INVALID_ARGUMENT if a text is not a list of strengths and
 * selectors, or has too many. */
tn_status tni_rule_requests_add(tni_rule_requests *requests, const tn_change *change,
                                const char *where, tn_error *err);

/* RULE and RULES settings as text. Of a RULE setting, only the nearest depth that has rules of
 * it. */
size_t tni_rules_write(const tn_context *context, tn_setting setting, char *out, size_t size);

#endif
