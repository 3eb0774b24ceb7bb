/* Products with an epilogue that cuBLASLt lacks: activations that it does not have, or does not compute from f32
 * sums, and the bias of complex products. The library computes the sums, into out if that is f32 or complex, else
 * into workspace, and a kernel of our own computes the epilogue. */
#ifndef CUDA_CUBLAS_AFTER_H
#define CUDA_CUBLAS_AFTER_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* Returns whether the op is such a product. */
bool lt_is_finished(const tn_op *op);

/* Writes what is given to the library: of such a product the sums alone, of f32, or complex ones of out's dtype, without
 * bias and activation; any other op as it is. */
void lt_sums_of(const tn_op *op, tn_op *out);

/* Returns the workspace for the sums, which precedes the library's; 0 if the sums go to out. A multiple of 256. The
 * type is double, which no size of an op overflows. */
double lt_sums_bytes(const tn_op *op);

/* Fails with TN_UNSUPPORTED and the reason if neither the library nor our kernel can compute the epilogue;
 * otherwise notes the workspace in `why`. */
tn_status lt_admit_following(const tn_kernel_row *row, const tn_op *op, tn_refusal *why);

#endif
