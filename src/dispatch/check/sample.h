/* debug.sample: one call in so many is computed again by the reference and compared. */
#ifndef TNI_DISPATCH_SAMPLE_H
#define TNI_DISPATCH_SAMPLE_H

#include "dispatch/dispatch.h"
#include "settings/context.h"

typedef struct tni_sample tni_sample;

bool tni_sample_count(int64_t every); /* true for one call in so many */

static inline bool tni_sample_is_due(const tn_context *context)
{
    int64_t every = context->value[TN_SETTING_DEBUG_SAMPLE];
    return every > 0 && tni_sample_count(every);
}

/* Keeps what the call will write over, after the work that the stream has. */
tn_status tni_sample_begin(const tni_problem *problem, tn_stream *stream, tni_sample **out,
                           tn_error *err);

/* Waits for the call and compares. TN_CORRUPT, and a line in the log, when it is wrong, with the kernel,
 * the device and the problem. The plan is run again then, on copies of the same operands that nobody else
 * can write to: a kernel that is wrong again is put into quarantine on that device, no other one ever. */
tn_status tni_sample_compare(tni_sample *sample, const tni_plan *plan, const tni_problem *problem,
                             tn_stream *stream, tn_error *err);
void tni_sample_release(tni_sample *sample); /* accepts NULL */

#endif
