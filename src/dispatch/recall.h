/* Calls that are the same again: what a thread has checked and planned once, it need not again. */
#ifndef TNI_DISPATCH_RECALL_H
#define TNI_DISPATCH_RECALL_H

#include "dispatch.h"

/* Runs a call that differs from an earlier one of this thread only in where its data lies, and that the
 * same plan still serves. False: nothing was done, and the call takes the whole way. */
bool tni_recall(const tni_asked *asked, tn_status *out_status, tn_error *err);

/* Remembers a call that was checked and planned, from its second time on. */
void tni_recall_keep(const tni_asked *asked, const tni_problem *problem, tni_plan *plan);

/* What a thread remembers, when it ends. Accepts NULL. */
struct tni_recalls;
void tni_recalls_release(struct tni_recalls *recalls);

#endif
