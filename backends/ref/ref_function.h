/* Functions of one number, in double for f32 and narrower floats and in long double for f64. */
#ifndef TNI_REF_FUNCTION_H
#define TNI_REF_FUNCTION_H

#include <stdbool.h>

#include "tenon/module/kernel.h"

/* `kind` is TN_UNARY_... */
double tni_ref_function(int32_t kind, double x);
long double tni_ref_function_long(int32_t kind, long double x);

/* The TN_UNARY_... of an activation; -1 for none. */
int32_t tni_ref_activation(int32_t activation);

/* Returns whether the function is libm's, so that its last bit depends on the machine. */
bool tni_ref_is_libm(int32_t kind);

/* Refuses libm's functions if results must be the same on every device. */
tn_status tni_ref_admit_function(const tn_query *query, int32_t kind, tn_refusal *why);

#endif
