/* Problems that a kernel declined when its plan was made: a vendor library reports only then what
 * it does not support. Thread-safety: Safe. */
#ifndef TNI_DISPATCH_DECLINED_H
#define TNI_DISPATCH_DECLINED_H

#include "plan.h"

/* The kernel's library cannot start here: the cause is the machine, not the problem. */
static inline bool tni_does_not_serve(tn_status status)
{
    return status == TN_UNAVAILABLE || status == TN_INCOMPATIBLE;
}

/* Failures to make a plan that are permanent for the kernel in this process, not temporary. */
static inline bool tni_declined_by(tn_status status)
{
    return status == TN_UNSUPPORTED || tni_does_not_serve(status);
}

/* Records that the state's kernel declined its problem, with its message. Only the latest entries
 * are kept. */
void tni_declined_note(const tni_state *state, const char *text);

/* Whether any entry exists; whether the state's kernel declined its problem in this process, in
 * which case `why` gets its message; the same for a candidate. */
bool tni_declined_any(void);
bool tni_declined_find(const tni_state *state, tn_refusal *why);
bool tni_declined(const tni_question *question, const tni_contender *of, tn_refusal *why);

/* Whether a refusal was made by tni_declined. */
bool tni_is_declined(const tn_refusal *why);

#endif
