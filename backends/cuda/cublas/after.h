/* Products whose activation cuBLASLt has not, or not from sums of f32, and complex products with a bias, which it has not
 * either: the library makes the sums, in out where that is of f32 or complex and else in workspace, and a kernel of our own
 * does what follows. */
#ifndef CUDA_CUBLAS_AFTER_H
#define CUDA_CUBLAS_AFTER_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* Whether the op is such a product. */
bool lt_is_finished(const tn_op *op);

/* The product alone, as the library is told of it: sums of f32, or complex ones of out's dtype, without
 * bias and activation. */
void lt_sums_of(const tn_op *op, tn_op *out);

/* Workspace for the sums, before the library's; 0 where out has them. A multiple of 256. As f64, which no size of an op overflows. */
double lt_sums_bytes(const tn_op *op);

/* TN_UNSUPPORTED, with why, for what has neither the library's own way nor this one; notes the memory else. */
tn_status lt_admit_following(const tn_kernel_row *row, const tn_op *op, tn_refusal *why);

#endif
