/* norm and rotary from inside. */
#ifndef TNI_OPS_NORM_H
#define TNI_OPS_NORM_H

#include "op.h"
#include "tenon/norm.h"

/* Where nothing is said. */
#define TNI_NORM_EPSILON 1e-5

/* The problems that calls are about, checked. */
tn_status tni_norm_make(const tn_norm_args *args, tni_problem *out, tn_error *err);
tn_status tni_rotary_make(const tn_rotary_args *args, tni_problem *out, tn_error *err);

#endif
