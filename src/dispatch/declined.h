/* Problems that a kernel declined when its plan was made: a vendor library reports only then what
 * it does not support. Thread-safety: Safe. */
#ifndef TNI_DISPATCH_DECLINED_H
#define TNI_DISPATCH_DECLINED_H

#include "plan.h"

/* Records that the state's kernel declined its problem, with its message. Only the latest entries
 * are kept. */
void tni_declined_note(const tni_state *state, const char *text);

/* Whether the candidate declined the problem in this process; if so, `why` gets its message. */
bool tni_declined(const tni_question *question, const tni_contender *of, tn_refusal *why);

/* Whether a refusal was made by tni_declined. */
bool tni_is_declined(const tn_refusal *why);

#endif
