/* Explaining and preparing an op that is at hand. */
#ifndef TNI_DISPATCH_DECISION_H
#define TNI_DISPATCH_DECISION_H

#include "dispatch.h"

tn_status tni_explain(const tn_context *context, const tn_op *op, tn_device *device,
                      tn_decision **out, tn_error *err);
tn_status tni_prepare(const tn_context *context, const tn_op *op, tn_device *device, tn_error *err);

#endif
