/* Rows that speak for others: the precision hierarchy and its older switches, and the switches that
 * write rules. */
#ifndef TNI_SETTINGS_VIEWS_H
#define TNI_SETTINGS_VIEWS_H

#include "context.h"
#include "table.h"

/* The precision that holds for `setting` of `context`, and which row says so: -1 where none does and
 * the default of the op holds. Never TN_FP32_NONE. `setting` is a row of precision. */
int32_t tni_precision_resolve(const tn_context *context, tn_setting setting, tn_setting *out_from);

/* Whether a row is one of precision, which may inherit. */
bool tni_precision_is(tn_setting setting);

/* What a view reads as, and the first row behind it. */
int64_t tni_view_read(const tn_context *context, tn_setting view, tn_setting *out_behind);

/* The changes that writing `value` through a view stands for: at most TNI_VIEW_MOST, the count is
 * returned. */
enum { TNI_VIEW_MOST = 2 };
size_t tni_view_write(tn_setting view, int64_t value, tn_change out[TNI_VIEW_MOST]);

/* The rows that a change sets: its own, or those behind its view. Their count is returned. */
size_t tni_change_rows(const tn_change *change, tn_change out[TNI_VIEW_MOST]);

/* Rules that a change stands for, put together before a list is derived. */
enum { TNI_WISHES_MOST = 256 };
typedef struct tni_wishes {
    tni_rule_wish items[TNI_WISHES_MOST];
    size_t count;
    tn_setting clear[TN_SETTING_COUNT];
    size_t clear_count;
    char text[8192]; /* of selectors cut out of longer texts */
    size_t used;
} tni_wishes;

/* Whether changes of `setting` write rules. */
bool tni_setting_rules(tn_setting setting);

/* Adds what `change` stands for; its setting's earlier rules are to be cleared, unless it is one more
 * rule. TN_INVALID_ARGUMENT when a text does not hold strengths and selectors, or too many of them. */
tn_status tni_wishes_add(tni_wishes *wishes, const tn_change *change, const char *where,
                         tn_error *err);

/* RULE and RULES rows as text: what the nearest depth that says something says. */
size_t tni_rules_write(const tn_context *context, tn_setting setting, char *out, size_t size);

#endif
