/* Explaining and preparing an op that is at hand. */
#ifndef TNI_DISPATCH_DECISION_H
#define TNI_DISPATCH_DECISION_H

#include "dispatch.h"

/* Of the problem that a call made, whose workspace counts, too. */
tn_status tni_explain_call(const tni_asked *asked, const tni_problem *problem, tn_decision **out,
                           tn_error *err);

/* Of an op at hand, with the bounds of a layer of attention, NULL for none. */
struct tni_backend_bounds;
tn_status tni_explain_within(const tn_context *context, const tn_op *op, tn_device *device,
                             const struct tni_backend_bounds *bounds, tn_decision **out,
                             tn_error *err);

tn_status tni_prepare(const tn_context *context, const tn_op *op, tn_device *device, tn_error *err);

#endif
