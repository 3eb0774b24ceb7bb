/* Times that were measured, and choices that are locked: one text form for both. */
#ifndef TNI_DISPATCH_TUNING_H
#define TNI_DISPATCH_TUNING_H

#include "dispatch/dispatch.h"

/* Microseconds that a kernel took for a problem like this on this device with this driver and library
 * version, and those by which it is compared with others; 0 when that is not known. Looks up, times
 * nothing. */
double tni_tuned_us(const tni_question *question, const tni_kernel *kernel, double *out_level_us);

/* Whether the context wishes that the question be tuned and it was not yet. */
bool tni_tuning_is_due(const tni_question *question, const tni_choice *choice);

/* Times the candidates that are admitted, at most tuning.limit of them, and keeps the times; a tie
 * within noise keeps the predicted order. Candidates that fail are left out. */
tn_status tni_tune(const tni_question *question, const tni_choice *choice, tn_error *err);

/* The clock that tuning reads, in nanoseconds; tests put another in its place. NULL puts it back. */
typedef int64_t tni_tuning_clock(void *user);
void tni_tuning_clock_set(tni_tuning_clock *clock, void *user);

/* What the lock says of a candidate: false, with `why`, when it names another one or another version.
 * True without a lock and for problems that it does not name, unless it is strict. */
bool tni_lock_permits(const tni_question *question, const tni_kernel *kernel,
                      int64_t library_version, tn_refusal *why);

#endif
