/* Internals of norm and rotary. */
#ifndef TNI_OPS_NORM_H
#define TNI_OPS_NORM_H

#include "op.h"
#include "tenon/norm.h"

/* The default. */
#define TNI_NORM_EPSILON 1e-5

/* Make the problems of calls, validated. */
tn_status tni_norm_make(const tn_norm_args *args, tni_problem *out, tn_error *err);
tn_status tni_rotary_make(const tn_rotary_args *args, tni_problem *out, tn_error *err);

#endif
