/* Error bounds of attention, from a second evaluation of every row in double.
 *
 * With u and g(n) of bounds.h, a score s, its weight p, a value v:
 *
 *     score         d = (g(size) + 8) u |scale| |q| |k| + 4 u (|s| + |mask|) + 8 u softcap; plus the error
 *                   of reading f32 as tf32 or bf16, if the kernel row declares that; plus 4 roundoffs of
 *                   16 bits times |scale| |q| |k|, if it declares 16-bit sums
 *     lse           D = sum of p d + (16 + g(n)) u
 *     out           sum of p (d + D + (16 + 2 |s - greatest|) u + g(n) u) |v|; 16-bit operands: plus 16
 *                   roundoffs of their dtype times sqrt(sum of (p v)^2), as weights may be rounded to it
 *     gradients     the same error of p, with the given lse; those of dp and delta, which are sums of
 *                   products; both propagated through ds = p (dp - delta) to dq, dk and dv
 *     merge         64 u (|in| + |other|); lse: 16 u (1 + |lse_in| + |lse_other|) */
#ifndef TNI_OP_ATTENTION_BOUNDS_H
#define TNI_OP_ATTENTION_BOUNDS_H

#include "op/bounds.h"

/* Members of tni_op_check for attention and attention-backward. */
tn_status tni_attention_bounds_init(tni_bounds *bounds, tn_error *err);
void tni_attention_bounds_release(tni_bounds *bounds);
double tni_attention_bound(tni_bounds *bounds, const tni_place *place, double size);

#endif
