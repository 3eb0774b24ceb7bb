/* Explaining and preparing an op. */
#ifndef TNI_DISPATCH_DECISION_H
#define TNI_DISPATCH_DECISION_H

#include "dispatch.h"

/* Explains the problem of a call; also checks the call's workspace. */
tn_status tni_explain_call(const tni_asked *asked, const tni_problem *problem, tn_decision **out,
                           tn_error *err);

/* Explains an op, with the bounds of an attention layer (may be NULL). */
struct tni_backend_bounds;
tn_status tni_explain_within(const tn_context *context, const tn_op *op, tn_device *device,
                             const struct tni_backend_bounds *bounds, tn_decision **out,
                             tn_error *err);

tn_status tni_prepare(const tn_context *context, const tn_op *op, tn_device *device, tn_error *err);

#endif
