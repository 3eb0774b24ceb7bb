/* attention: for each query, the average of the values of the keys it sees, weighted by the softmax
 * of the scores.
 *
 *     score  = cap(scale q . k) + mask           cap(x) = softcap tanh(x / softcap), or x
 *     out    = sum of exp(score - lse) v         over the keys that are seen
 *     lse    = ln(sum of exp(score))             natural; a sink adds one more score, without a value
 *
 * For a query that sees no key, out is 0 and lse is -infinity (with a sink, lse is the sink).
 * Scores and sums are computed in f32, for f64 in f64. Intermediate results are not rounded to
 * 16-bit dtypes, except the weights for the second product, which may be.
 *
 * Whatever the order in memory, Q is [batch, heads, queries, size], K [batch, groups, keys, size],
 * V [batch, groups, keys, value size], OUT [batch, heads, queries, value size], LSE [batch, heads,
 * queries]; head h reads group h / (heads / groups). MASK is [batch, heads, queries, keys], with
 * stride 0 where it is broadcast: in a boolean mask, true is seen; a float mask is added. SINKS is
 * [heads].
 *
 * A key is excluded for a query by its position, by a length, by false in a boolean mask or by
 * -infinity in a float mask; all other keys are seen. Every kernel must follow these rules, also
 * for NaN and infinity in K and V:
 *
 *   - An excluded key contributes nothing: results are as if it did not exist, whatever K and V
 *     contain. In a tile with excluded keys, their values must not be multiplied by weights of 0.
 *   - A key that is seen contributes its weight times its value by the rules of IEEE 754, even if
 *     the weight is 0, because the score is -infinity or because exp underflows. So a NaN in V gives
 *     NaN in its column for every query that sees it. An infinity in V gives that infinity, or NaN
 *     if the weight underflows in the kernel: below 2^-126 of the largest weight, 2^-1022 for f64,
 *     2^-24 for weights that are rounded to f16.
 *   - A weight that dropout drops is part of lse and contributes nothing to out.
 *   - A query whose scores are all -infinity counts as one that sees no key.
 *
 * Packed: sequences are stored one after another. Q, OUT and LSE have a batch of one and all
 * queries, K and V all keys. STARTS_Q and STARTS_K are i32 [batch + 1]: where each sequence begins
 * and the last one ends. LENGTHS is i32 [batch]: the number of valid keys of each sequence; the
 * rest is never read. PAGES is i32 [batch, pages of a sequence]: K and V are [pages, groups, page,
 * size], and key j of sequence b is row j % page of the page PAGES[b][j / page].
 *
 * Key j is seen by query i if, with d = i + shift (+ keys - queries of the sequence, for the
 * bottom-right corner), j <= d + right and j >= d - left; -1: no bound on that side.
 *
 * Dropout keeps weight (b, h, i, j) if its random number is at least `dropout`, and divides kept
 * weights by 1 - dropout. The random number is number ((b heads + h) queries + i) keys + j of the
 * uniform f32 numbers of Philox with `seed`, counted from block `offset`.
 *
 * SEED is i64 [2], contiguous: the 64 bits of seed and of offset, in the device's memory, in place of those of
 * the parameters. A kernel reads them when it runs, so that a captured graph can run again with
 * other ones.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_ATTENTION_H
#define TENON_MODULE_OP_ATTENTION_H

#include "../op.h"

TN_BEGIN_DECLS

enum { TN_OP_ATTENTION = 11 };

enum {
    TN_ATTENTION_Q = 0,
    TN_ATTENTION_K = 1,
    TN_ATTENTION_V = 2,
    TN_ATTENTION_OUT = 3,
    TN_ATTENTION_LSE = 4,
    TN_ATTENTION_MASK = 5,
    TN_ATTENTION_SINKS = 6,
    TN_ATTENTION_STARTS_Q = 7,
    TN_ATTENTION_STARTS_K = 8,
    TN_ATTENTION_LENGTHS = 9,
    TN_ATTENTION_PAGES = 10,
    TN_ATTENTION_SEED = 11,
    TN_ATTENTION_OPERANDS
};

enum {
    TN_ATTENTION_USES_WINDOW = 1 << 0,      /* position restricts the keys that queries see  */
    TN_ATTENTION_USES_MASK = 1 << 1,        /* a boolean mask                                */
    TN_ATTENTION_USES_ADDITIVE = 1 << 2,    /* a float mask                                  */
    TN_ATTENTION_USES_GROUPS = 1 << 3,      /* several heads share keys and values           */
    TN_ATTENTION_USES_SOFTCAP = 1 << 4,     /* softcap is not 0                              */
    TN_ATTENTION_USES_SINKS = 1 << 5,       /* SINKS is present                              */
    TN_ATTENTION_USES_LSE = 1 << 6,         /* LSE is computed                               */
    TN_ATTENTION_USES_DROPOUT = 1 << 7,     /* dropout is not 0                              */
    TN_ATTENTION_USES_PACKED = 1 << 8,      /* STARTS_Q is present                           */
    TN_ATTENTION_USES_LENGTHS = 1 << 9,     /* LENGTHS is present                            */
    TN_ATTENTION_USES_PAGES = 1 << 10,      /* PAGES is present                              */
    TN_ATTENTION_USES_VALUE_SIZE = 1 << 11, /* the sizes of values and keys differ           */
    TN_ATTENTION_USES_STRIDES = 1 << 12,    /* last dimension of Q, K, V, OUT not contiguous */
    TN_ATTENTION_USES_OUT_DTYPE = 1 << 13,  /* out is f32 and the operands are 16-bit        */
    TN_ATTENTION_USES_OFFSET = 1 << 14,     /* shift is not 0                                */
    TN_ATTENTION_USES_SEED = 1 << 15        /* SEED is present                               */
};

/* Dimensions for which one plan of a kernel may serve any value. */
enum {
    TN_ATTENTION_DIM_BATCH = 1,
    TN_ATTENTION_DIM_HEADS = 2, /* and groups */
    TN_ATTENTION_DIM_QUERIES = 4,
    TN_ATTENTION_DIM_KEYS = 8
};

enum { TN_CORNER_TOP_LEFT = 0, TN_CORNER_BOTTOM_RIGHT = 1 };

/* Backend names for attention. TORCH_SDPA stands for a family (sdpa.h); with NO_ATTENTION every
 * call is refused. Numbers are never reused. */
enum {
    TN_BACKEND_AUTOMATIC = -1, /* in a request: the fastest, ignoring settings                 */
    TN_BACKEND_NONE = 0,       /* in a request: none; in an answer: a backend without a number */
    TN_BACKEND_FLASH_ATTN = 1,
    TN_BACKEND_SLIDING_TILE_ATTN = 2,
    TN_BACKEND_TORCH_SDPA = 3,
    TN_BACKEND_SAGE_ATTN = 4,
    TN_BACKEND_VIDEO_SPARSE_ATTN = 5,
    TN_BACKEND_NO_ATTENTION = 6,
    TN_BACKEND_SAGE_ATTN_THREE = 7,
    TN_BACKEND_ATTN_QAT_INFER = 8,
    TN_BACKEND_ATTN_QAT_TRAIN = 9,
    TN_BACKEND_VIDEO_SPARSE_ATTN_H3 = 10,
    TN_BACKEND_BSA_ATTN = 11,
    TN_BACKEND_VMOBA_ATTN = 12,
    TN_BACKEND_SLA_ATTN = 13,
    TN_BACKEND_SAGE_SLA_ATTN = 14,
    TN_BACKEND_NABLA_ATTN = 15,
    TN_BACKEND_COUNT
};

typedef struct tn_attention_op {
    int64_t batch;         /* number of sequences                    */
    int64_t heads, groups; /* heads of Q; heads of K and V           */
    int64_t queries, keys; /* of the longest sequence, packed or not */
    int64_t size, value_size;
    int64_t page; /* keys per page; 0: not paged */
    int64_t left, right, shift;
    int32_t corner;  /* TN_CORNER_...                    */
    int32_t backend; /* requested TN_BACKEND_...; 0: any */
    double scale, softcap, dropout;
    uint64_t seed, offset; /* of dropout, unless SEED is present */
} tn_attention_op;
TN_PARAMS_FIT(tn_attention_op);

/* Numbers of the operators with these parameters: attention and attention-backward. */
enum { TN_ATTENTION_KIND_FIRST = 11, TN_ATTENTION_KIND_LAST = 12 };

/* NULL for an op of another operator. */
static inline const tn_attention_op *tn_op_attention(const tn_op *op)
{
    return op->kind >= TN_ATTENTION_KIND_FIRST && op->kind <= TN_ATTENTION_KIND_LAST
               ? TN_PARAMS(op, attention)
               : NULL;
}

TN_END_DECLS

#endif
