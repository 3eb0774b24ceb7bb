/* debug.sample: compares every n-th call with the reference. */
#ifndef TNI_POLICY_ADMISSION_SAMPLE_H
#define TNI_POLICY_ADMISSION_SAMPLE_H

#include "dispatch/policy.h"

typedef struct tni_sample tni_sample;

/* Copies the operands before the call, after the work that the stream already has. */
tn_status tni_sample_create(const tni_problem *problem, tn_stream *stream, tni_sample **out,
                            tn_error *err);

/* Waits for the call and compares its outputs. If they are wrong, runs the plan again on private
 * copies of the operands, logs an error with the kernel, the device and the problem, and fails with
 * TN_CORRUPT. Quarantines the kernel on that device only if it is wrong again. */
tn_status tni_sample_compare(tni_sample *sample, const tni_plan *plan, const tni_problem *problem,
                             tn_stream *stream, tn_error *err);
void tni_sample_release(tni_sample *sample); /* accepts NULL */

/* Samples one run in debug.sample, which must be greater than 0. */
extern const tni_run_watch tni_sample_watch;

#endif
