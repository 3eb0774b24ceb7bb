/* From a public function of an operator to its kernel. Every entry point takes this path. */
#ifndef TNI_DISPATCH_CALL_H
#define TNI_DISPATCH_CALL_H

#include "op/op.h"
#include "tenon/explain.h"

/* Run, explain and prepare a call. `args` is the argument struct of the class's public function; it
 * may be NULL or invalid. A NULL context means the thread's current one. */
tn_status tni_call_run(const tn_context *context, const tni_op_class *class, const void *args,
                       tn_error *err);
tn_status tni_call_explain(const tn_context *context, const tni_op_class *class, const void *args,
                           tn_decision **out, tn_error *err);
tn_status tni_call_prepare(const tn_context *context, const tni_op_class *class, const void *args,
                           tn_error *err);

#endif
