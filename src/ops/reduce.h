/* Internals of reduce and softmax. */
#ifndef TNI_OPS_REDUCE_H
#define TNI_OPS_REDUCE_H

#include "op.h"
#include "tenon/reduce.h"

/* Make the problems of calls, validated. */
tn_status tni_reduce_make(const tn_reduce_args *args, tni_problem *out, tn_error *err);
tn_status tni_softmax_make(const tn_softmax_args *args, tni_problem *out, tn_error *err);

#endif
