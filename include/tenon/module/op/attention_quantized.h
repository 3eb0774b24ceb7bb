/* attention-quantized: attention (op/attention.h) whose first product is computed from integers of 8
 * bits, and whose second product is computed in a chosen precision.
 *
 * Every kernel follows this rule, in which all numbers but those that are called rounded are exact:
 *
 *     k'       = k - mean(k)         mean over all keys, for each batch element, group and column,
 *                                    unless `smoothing` is TN_SMOOTHING_NONE
 *     sq, sk   = max |x| / 127 + 1e-7    of each group of rows of q and of k' (below)
 *     q^, k^   = q / sq, k' / sk     rounded to the nearest integer, halves away from zero
 *     score    = scale sq sk (q^ . k^)
 *     weight   = rounded(limit exp(score - m)) / limit
 *                                    m is the query's greatest score among the keys of the step that
 *                                    it sees; keys 128 n to 128 n + 127 are step n
 *     out      = sum of exp(m - M) weight v^ / sum of exp(m - M) weight
 *                                    over the keys that are seen; M is the greatest m
 *     lse      = ln(sum of exp(score)) + scale (q . mean(k))
 *
 *     weights      limit   rounding of the weights     v^
 *     f32              1   none                        v
 *     f16              1   to f16                      v rounded to f16
 *     f8_e4m3fn      448   to e4m3                     sv times e4m3 of v / sv; sv = max |v| / 448 + 1e-7
 *     u8             255   to integers                 sv times the integer nearest to v / sv;
 *     i8             127   to integers                     sv = max |v| / 127 + 1e-7
 *
 * sv belongs to a column of a batch element and group. Floats are rounded to nearest even, integers
 * to nearest, halves away from zero.
 *
 *     scales    rows of q that share sq             rows of k that share sk
 *     thread    rows equal mod 8 of 32              of 64 rows, those equal in (j mod 8) / 2
 *     warp      32                                  64
 *     block     128                                 64
 *
 * Kernels compute means, divisions and exponentials in f32, so an integer may be one off if the
 * exact number is near the middle of two; the error bound allows that and no more.
 *
 * Operands and positions are as for attention: head h reads group h / (heads / groups), and a query
 * that sees no key gets out 0 and lse -infinity. Means and scales are of all keys, also of those
 * that no query sees. If K or V of a group has a NaN or an infinity, or for f16 a value that rounds
 * to one, then OUT and LSE of the heads that read it are NaN; if Q has one, those of the rows that
 * share its sq. Only rows that see no key keep 0 and -infinity. Finite numbers must be such that
 * scores are finite in f32.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_ATTENTION_QUANTIZED_H
#define TENON_MODULE_OP_ATTENTION_QUANTIZED_H

#include "attention.h"

TN_BEGIN_DECLS

enum { TN_OP_ATTENTION_QUANTIZED = 17 };

/* They have the indices of attention. */
enum {
    TN_ATTENTION_QUANTIZED_Q = 0,
    TN_ATTENTION_QUANTIZED_K = 1,
    TN_ATTENTION_QUANTIZED_V = 2,
    TN_ATTENTION_QUANTIZED_OUT = 3,
    TN_ATTENTION_QUANTIZED_LSE = 4,
    TN_ATTENTION_QUANTIZED_OPERANDS
};

enum {
    TN_ATTENTION_QUANTIZED_USES_WINDOW = 1 << 0,     /* position restricts the keys             */
    TN_ATTENTION_QUANTIZED_USES_GROUPS = 1 << 1,     /* several heads share keys and values     */
    TN_ATTENTION_QUANTIZED_USES_LSE = 1 << 2,        /* LSE is computed                         */
    TN_ATTENTION_QUANTIZED_USES_VALUE_SIZE = 1 << 3, /* the sizes of values and keys differ     */
    TN_ATTENTION_QUANTIZED_USES_STRIDES = 1
                                          << 4, /* last dimension of Q, K, V, OUT not contiguous */
    TN_ATTENTION_QUANTIZED_USES_OUT_DTYPE = 1 << 5, /* out is f32 and the operands are 16-bit  */
    TN_ATTENTION_QUANTIZED_USES_RAW = 1 << 6,       /* K is not smoothed                       */
    TN_ATTENTION_QUANTIZED_USES_F16 = 1 << 7,       /* weights f16; f32 has no bit             */
    TN_ATTENTION_QUANTIZED_USES_F8 = 1 << 8,        /* weights f8_e4m3fn                       */
    TN_ATTENTION_QUANTIZED_USES_I8 = 1 << 9         /* weights u8 or i8                        */
};

/* Rows that share a scale. */
enum { TN_SCALES_THREAD = 0, TN_SCALES_WARP, TN_SCALES_BLOCK, TN_SCALES_COUNT };

enum { TN_SMOOTHING_K = 0, TN_SMOOTHING_NONE, TN_SMOOTHING_COUNT };

/* Keys of a step, and the rows of Q and K in which groups lie. */
enum { TN_QUANTIZED_STEP = 128, TN_QUANTIZED_Q_ROWS = 128, TN_QUANTIZED_K_ROWS = 64 };

/* Greatest number of columns of Q and K: sums of products of integers fit in 32 bits. */
enum { TN_QUANTIZED_SIZE_MOST = 65536 };

typedef struct tn_attention_quantized_op {
    tn_attention_op at; /* softcap, dropout, seed, offset, shift, page and backend are 0 */
    tn_dtype weights;   /* TN_F32, TN_F16, TN_F8_E4M3FN, TN_U8 or TN_I8 */
    int32_t scales;     /* TN_SCALES_... */
    int32_t smoothing;  /* TN_SMOOTHING_... */
    int32_t reserved;   /* 0 */
} tn_attention_quantized_op;
TN_PARAMS_FIT(tn_attention_quantized_op);

/* Return the number of the group of a row of Q and of K; groups are numbered from 0 on. */
static inline int64_t tn_quantized_q_group(int32_t scales, int64_t i)
{
    return scales == TN_SCALES_BLOCK  ? i / TN_QUANTIZED_Q_ROWS
           : scales == TN_SCALES_WARP ? i / 32
                                      : i / 32 * 8 + i % 8;
}

static inline int64_t tn_quantized_k_group(int32_t scales, int64_t j)
{
    return scales == TN_SCALES_THREAD ? j / TN_QUANTIZED_K_ROWS * 4 + j % 8 / 2
                                      : j / TN_QUANTIZED_K_ROWS;
}

/* Greatest number that a rounded weight, or value divided by its scale, has; 1: not scaled. */
static inline int tn_quantized_weight_limit(tn_dtype weights)
{
    return weights == TN_U8 ? 255 : weights == TN_I8 ? 127 : weights == TN_F8_E4M3FN ? 448 : 1;
}

static inline int tn_quantized_value_limit(tn_dtype weights)
{
    return weights == TN_U8 || weights == TN_I8 ? 127 : weights == TN_F8_E4M3FN ? 448 : 1;
}

TN_END_DECLS

#endif
