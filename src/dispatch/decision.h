/* Explaining and preparing an op that is at hand. */
#ifndef TNI_DISPATCH_DECISION_H
#define TNI_DISPATCH_DECISION_H

#include "dispatch.h"

tn_status tni_explain(const tn_context *context, const tn_op *op, tn_device *device,
                      tn_decision **out, tn_error *err);

/* The same with the bounds of a layer of attention, NULL for none. */
struct tni_backend_bounds;
tn_status tni_explain_within(const tn_context *context, const tn_op *op, tn_device *device,
                             const struct tni_backend_bounds *bounds, tn_decision **out,
                             tn_error *err);

tn_status tni_prepare(const tn_context *context, const tn_op *op, tn_device *device, tn_error *err);

#endif
