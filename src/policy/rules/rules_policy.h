/* The rules of the context, applied to candidates. */
#ifndef TNI_POLICY_RULES_RULES_POLICY_H
#define TNI_POLICY_RULES_RULES_POLICY_H

#include "settings/rules.h"
#include "tenon/explain.h"

#include <stdbool.h>

/* Returns false and sets `why` if rules forbid the candidate or require another one. */
bool tni_rules_permit(const tni_judgement *judged, tn_refusal *why);

#endif
