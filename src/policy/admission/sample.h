/* debug.sample: compares every n-th call with the reference. */
#ifndef TNI_POLICY_ADMISSION_SAMPLE_H
#define TNI_POLICY_ADMISSION_SAMPLE_H

#include "dispatch/dispatch.h"
#include "settings/context.h"

typedef struct tni_sample tni_sample;

bool tni_sample_count(int64_t every); /* counts a call; true for one call in `every` */

static inline bool tni_sample_is_due(const tn_context *context)
{
    int64_t every = context->value[TN_SETTING_DEBUG_SAMPLE];
    return every > 0 && tni_sample_count(every);
}

/* Copies the operands before the call, after the work that the stream already has. */
tn_status tni_sample_create(const tni_problem *problem, tn_stream *stream, tni_sample **out,
                            tn_error *err);

/* Waits for the call and compares its outputs. If they are wrong, runs the plan again on private
 * copies of the operands, logs an error with the kernel, the device and the problem, and fails with
 * TN_CORRUPT. Quarantines the kernel on that device only if it is wrong again. */
tn_status tni_sample_compare(tni_sample *sample, const tni_plan *plan, const tni_problem *problem,
                             tn_stream *stream, tn_error *err);
void tni_sample_release(tni_sample *sample); /* accepts NULL */

#endif
