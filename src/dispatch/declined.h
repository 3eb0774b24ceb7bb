/* Problems that a kernel declined when its plan was made: a vendor's library says only then what it does not
 * take. Thread-safety: Safe. */
#ifndef TNI_DISPATCH_DECLINED_H
#define TNI_DISPATCH_DECLINED_H

#include "plan.h"

/* Keeps that the state's kernel declined its problem, and in which words; of many, the latest. */
void tni_declined_note(const tni_state *state, const char *text);

/* Whether the candidate declined the problem in this process, with its words in `why`. */
bool tni_declined(const tni_question *question, const tni_contender *of, tn_refusal *why);

/* Whether that is what a refusal says. */
bool tni_is_declined(const tn_refusal *why);

#endif
