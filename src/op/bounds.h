/* Error bounds of a kernel's outputs against the reference's, derived from the op and its inputs.
 *
 * u is the roundoff (tni_dtype_roundoff) of the dtype that is computed in, e the expected number. The
 * error of a sum of n numbers is at most g(n) = min(2 n, 16 sqrt n) roundoffs of the sum of their absolute
 * values. The first term always holds; the second holds for independent rounding errors, except with
 * probability e^-128 (N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis",
 * 2019).
 *
 *     permute fill cast, integers, neg abs relu, add sub mul max min of reals      0
 *     matmul        (g(k) + 8) u |alpha| |row of A| |column of B| + 4 u (|beta c| + |bias| + |e|);
 *                   if the kernel row declares that it reads A and B as tf32 or bf16, or sums in fewer
 *                   bits, plus the error of that; if it declares that it rounds the product before adding
 *                   a bias or beta c, plus |alpha| |row of A| |column of B| times a roundoff of out's
 *                   dtype; with an activation, plus 1/5 of all that and 8 u times the size of its input.
 *                   Integer outputs: 0 if alpha and beta are integers, else 1 + 2^-22 |e|
 *     sqrt 2 u |e|, rsqrt exp 8 u |e|, log 8 u |e| + 2 u, tanh 8 u |e| + 4 u, sigmoid silu 16 u |e|,
 *     gelu          16 u |x|: its tail is a difference of numbers as large as x
 *     div           4 u |e|; complex: mul 8 u |e|, div 32 u |e|
 *     sum           g(n) u times the sum of |x|; mean: that divided by n; prod: 2 g(n) u |e|
 *     softmax       (32 + g(n) + 4 greatest finite |x|) u |e|; log-softmax: 1 + |e| instead of |e|
 *     norm          (g(n) + 16) u (r + |x|) / s (1 + r^2 / s^2) |weight| + 4 u (|e| + |bias|), where
 *                   r^2 is the mean of squares and s the divisor: also allows a variance computed from
 *                   the sum of squares
 *     fft           4 (4 + log2 n) u |scale| times the sum of the |x| of its n points
 *     rotary        4 u (|x| + |y|) max(|cos|, |sin|)
 *     attention     see attention/attention_bounds.h
 *
 * Every bound but 0 of an output that is not an integer also includes the final rounding: 2 |e| roundoffs of
 * out's dtype plus its least positive number. */
#ifndef TNI_OP_BOUNDS_H
#define TNI_OP_BOUNDS_H

#include "base/dtype.h"
#include "element.h"
#include "tenon/module/kernel.h"
#include "walk.h"

typedef struct tni_bounds {
    const tn_op *op;
    int32_t output; /* the operand that is compared */
    void *const *data;
    uint64_t numerics;                    /* TN_NUM_... of the kernel */
    double work;                          /* u */
    double sum;                           /* g(n) */
    void *own;                            /* of the op's bound_init; released by bound_release */
    double greatest, total, mean, square; /* of the current row: finite |x|, sum of |x|, x, x^2 */
} tni_bounds;

/* `op`, `output`, `data` and `numerics` must be set; borrowed. Fails with TN_OUT_OF_MEMORY; then
 * nothing needs to be released. */
tn_status tni_bounds_init(tni_bounds *bounds, tn_error *err);
void tni_bounds_release(tni_bounds *bounds);

/* g(n) */
static inline double tni_bounds_gathered(double n)
{
    double sure = 2 * n, likely = 16 * sqrt(n);
    return sure < likely ? sure : likely;
}

/* An operand's element. */
static inline tni_number tni_bounds_input(const tni_bounds *bounds, int32_t operand,
                                          const tni_place *place)
{
    const tn_layout *layout = &bounds->op->operand[operand];
    const char *first = bounds->data[operand];
    return tni_element_read(layout->dtype,
                            first + tni_place_in(place, layout) * tni_dtype_bytes(layout->dtype));
}

/* Absolute value. */
static inline double tni_number_size(tni_number x)
{
    return x.im == 0 ? fabs(x.re) : hypot(x.re, x.im);
}

/* Reads the row of in that starts at the place: its last `kept` dimensions. Sets the fields of the
 * current row. */
void tni_bounds_read_row(tni_bounds *bounds, tni_place place, int32_t kept);

/* Reads the row of in's last dimension if the place is its first element. */
void tni_bounds_enter_row(tni_bounds *bounds, const tni_place *place);

/* Returns the bound of one output. Places must come in order, from the first on. */
double tni_bounds_at(tni_bounds *bounds, const tni_place *place, tni_number expected);

#endif
