/* Measured times and locked choices: both use the same text form. */
#ifndef TNI_POLICY_TUNING_TUNING_H
#define TNI_POLICY_TUNING_TUNING_H

#include "dispatch/dispatch.h"

/* Returns the microseconds that a kernel took for such a problem on this device with this driver
 * and library version, and in *out_level_us the value that is compared with other kernels'; 0 if
 * unknown. Only looks up, times nothing. */
double tni_tuned_us(const tni_question *question, const tni_kernel *kernel, double *out_level_us);

/* Whether the context asks for tuning and the question was not tuned yet. */
bool tni_tuning_is_due(const tni_question *question, const tni_choice *choice);

/* Times the admitted candidates, at most tuning.limit of them, and stores the times. Times that tie
 * within noise keep the predicted order. Candidates that fail are left out. */
tn_status tni_tune(const tni_question *question, const tni_choice *choice, tn_error *err);

/* Sets the clock that tuning reads, in nanoseconds; used by tests. NULL restores the default. */
typedef int64_t tni_tuning_clock(void *user);
void tni_tuning_clock_set(tni_tuning_clock *clock, void *user);

#endif
