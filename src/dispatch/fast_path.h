/* Repeated calls: a thread checks and plans a call once and then reuses the result. */
#ifndef TNI_DISPATCH_FAST_PATH_H
#define TNI_DISPATCH_FAST_PATH_H

#include "dispatch.h"

/* Runs a call that differs from an earlier call of this thread only in the addresses of its data,
 * if the same plan is still valid. False: nothing was done, and the call takes the normal path. */
bool tni_fast_path_lookup(const tni_asked *asked, tn_status *out_status, tn_error *err);

/* Remembers a call that was checked and planned, from its second occurrence on. `epoch` is
 * tni_epoch_now from before the plan was sought. */
void tni_fast_path_keep(const tni_asked *asked, const tni_problem *problem, tni_plan *plan,
                        uint64_t epoch);

#endif
