/* Internals of permute, cast, fill, unary and binary. */
#ifndef TNI_OPS_ELEMENTWISE_H
#define TNI_OPS_ELEMENTWISE_H

#include "op.h"
#include "tenon/elementwise.h"

/* Make the problems of calls, validated. */
tn_status tni_permute_make(const tn_permute_args *args, tni_problem *out, tn_error *err);
tn_status tni_cast_make(const tn_cast_args *args, tni_problem *out, tn_error *err);
tn_status tni_fill_make(const tn_fill_args *args, tni_problem *out, tn_error *err);
tn_status tni_unary_make(const tn_unary_args *args, tni_problem *out, tn_error *err);
tn_status tni_binary_make(const tn_binary_args *args, tni_problem *out, tn_error *err);

/* Permutes in's dimensions to out's order. */
tn_status tni_permute_order(tn_layout *in, const int32_t *order, int32_t count, tn_error *err);

#endif
