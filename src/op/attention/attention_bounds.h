/* How far the numbers of attention may be off, from a second evaluation of every row in double.
 *
 * With u, g(n) of bounds.h, s a score, p the weight it has, v a value:
 *
 *     score         d = (g(size) + 8) u |scale| |q| |k| + 4 u (|s| + |mask|) + 8 u softcap; read as tf32 or
 *                   bf16, as the row declares, what that does; sums that it keeps in 16 bits: 4 of their
 *                   roundoffs of |scale| |q| |k|
 *     lse           D = sum of p d + (16 + g(n)) u
 *     out           sum of p (d + D + (16 + 2 |s - greatest|) u + g(n) u) |v|; weights of 16-bit operands
 *                   may be rounded to their dtype: 16 of its roundoffs of the root of the sum of (p v)^2
 *     gradients     the same of p with the lse that is given, of dp and delta as sums of products, through
 *                   ds = p (dp - delta) to dq, dk and dv
 *     merge         64 u (|in| + |other|), of the lse 16 u (1 + |lse_in| + |lse_other|) */
#ifndef TNI_OP_ATTENTION_BOUNDS_H
#define TNI_OP_ATTENTION_BOUNDS_H

#include "op/bounds.h"

/* Members of tni_op_check for attention and attention-backward. */
tn_status tni_attention_bounds_init(tni_bounds *bounds, tn_error *err);
void tni_attention_bounds_release(tni_bounds *bounds);
double tni_attention_bound(tni_bounds *bounds, const tni_place *place, double size);

#endif
