/* Ops: descriptors of a computation, without data. The core creates and checks them; kernels read
 * them.
 *
 * Each operand has a layout: dtype, shape, strides. Every feature beyond the plain computation is a
 * bit of `uses`; a kernel that does not support all of these bits is not considered. So a kernel
 * built before a feature existed can never ignore it.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_H
#define TENON_MODULE_OP_H

#include "dtype.h"

TN_BEGIN_DECLS

/* Name, number, word in the text of a problem. Numbers are never reused. */
#define TN_OP_LIST(X)                               \
    X(MATMUL, 1, "matmul")                          \
    X(PERMUTE, 2, "permute")                        \
    X(CAST, 3, "cast")                              \
    X(FILL, 4, "fill")                              \
    X(UNARY, 5, "unary")                            \
    X(BINARY, 6, "binary")                          \
    X(REDUCE, 7, "reduce")                          \
    X(SOFTMAX, 8, "softmax")                        \
    X(NORM, 9, "norm")                              \
    X(ROTARY, 10, "rotary")                         \
    X(ATTENTION, 11, "attention")                   \
    X(ATTENTION_BACKWARD, 12, "attention-backward") \
    X(ATTENTION_MERGE, 13, "attention-merge")

enum {
    TN_OP_NONE = 0,
#define TN_OP_ENUM_(NAME, number, word) TN_OP_##NAME = number,
    TN_OP_LIST(TN_OP_ENUM_)
#undef TN_OP_ENUM_
        TN_OP_COUNT
};

/* Maximum number of dimensions and of operands of an op. */
#define TN_OP_RANK_MAX     8
#define TN_OP_OPERANDS_MAX 16

/* Alignments are powers of two, at most this. */
#define TN_OP_ALIGNMENT_MAX 64

/* One operand. If it is absent, dtype is 0 and no other field is set. */
typedef struct tn_layout {
    tn_dtype dtype;
    int32_t rank;
    int64_t alignment; /* of its first element, in bytes; kernels see at most their row's */
    int64_t shape[TN_OP_RANK_MAX];  /* the first `rank` of them */
    int64_t stride[TN_OP_RANK_MAX]; /* in elements; 0 along broadcast dimensions */
} tn_layout;

/* matmul: out = activation(alpha * A B + beta * out + bias). A is [batch..., m, k], B [batch..., k,
 * n], out [batch..., m, n], all of the same rank. Broadcast operands have stride 0; transposed
 * operands have transposed strides. A bias has out's shape, with stride 0 where it is broadcast. If
 * beta is 0, out is never read; if alpha is 0, A and B may or may not be read. Sums, and everything
 * else before the final rounding, are computed in `acc`. NaN and infinity in what is read follow
 * IEEE 754.
 *
 * A and B of 8-bit floats may have f32 scales: the sum for an output is multiplied by both. They
 * have out's shape; SCALE_A has stride 0 along n, SCALE_B along m, and both wherever one number is
 * broadcast. */
enum {
    TN_MATMUL_A = 0,
    TN_MATMUL_B,
    TN_MATMUL_OUT,
    TN_MATMUL_BIAS,
    TN_MATMUL_SCALE_A,
    TN_MATMUL_SCALE_B,
    TN_MATMUL_OPERANDS
};

/* gelu: x/2 (1 + erf(x/sqrt 2)); gelu-tanh: its tanh form; silu: x / (1 + exp(-x)). */
#define TN_ACTIVATION_LIST(X)    \
    X(NONE, 0, "none")           \
    X(RELU, 1, "relu")           \
    X(GELU, 2, "gelu")           \
    X(GELU_TANH, 3, "gelu-tanh") \
    X(SILU, 4, "silu")
enum {
#define TN_OP_WORD_(NAME, number, word) TN_ACT_##NAME = number,
    TN_ACTIVATION_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_ACT_COUNT
};

#define TN_MATMUL_USES_LIST(X)                                                              \
    X(BATCH, 0, "batch")         /* more than one matrix                                 */ \
    X(BROADCAST, 1, "broadcast") /* a matrix of A or B is broadcast over the batch       */ \
    X(TRANSPOSE, 2, "transpose") /* A or B is column-major                               */ \
    X(STRIDES, 3, "strides")     /* an operand has neither contiguous rows nor columns   */ \
    X(ALPHA, 4, "alpha")         /* alpha is not 1                                       */ \
    X(BETA, 5, "beta")           /* beta is not 0                                        */ \
    X(BIAS, 6, "bias")                                                                      \
    X(ACTIVATION, 7, "activation")                                                          \
    X(OUT_DTYPE, 8, "out") /* out's dtype is not the default for A and B           */       \
    X(ACC, 9, "acc")       /* acc is not the default                               */       \
    X(SCALES, 10, "scales")                                                                 \
    X(FAR_FACTORS, 11,                                                                      \
      "far-factors") /* alpha or beta is outside f32's range, where f32 is multiplied */
enum {
#define TN_OP_WORD_(NAME, bit, word) TN_MATMUL_USES_##NAME = 1 << bit,
    TN_MATMUL_USES_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
};

/* Dimensions for which one plan of a kernel may serve any value. */
enum { TN_MATMUL_DIM_M = 1, TN_MATMUL_DIM_N = 2, TN_MATMUL_DIM_K = 4, TN_MATMUL_DIM_BATCH = 8 };

typedef struct tn_matmul_op {
    int64_t m, n, k;
    int64_t matrices;   /* product of the batch dimensions                               */
    int32_t batch_rank; /* number of dimensions before the last two                      */
    int32_t activation; /* TN_ACT_...                                                    */
    tn_dtype acc;       /* dtype of the accumulator                                      */
    int32_t grouped;    /* 1: one of several queued at once; the computation is the same */
    double alpha;
    double beta;
} tn_matmul_op;

/* Elementwise and row ops. All operands have the same rank and shape, unless stated.
 *
 *     permute  out = in, same dtype; in's dimensions are already in out's order
 *     cast     out = in converted to another dtype. To floats: round to nearest even. To integers:
 *              truncate towards zero, out-of-range values saturate, NaN becomes 0. To bool: nonzero,
 *              in either part of a complex number. Otherwise the real part of a complex number
 *     fill     out = value; there is no IN
 *     unary    out = f(in)
 *     binary   out = f(in, other)
 *     reduce   the last `axes` dimensions of out are 1, with stride 0; in is reduced over them
 *     softmax  along the last dimension: exp(in - max) / sum; with the bit LOG its logarithm
 *     norm     along the last dimension, of `size`; weight and bias have in's shape, with stride 0
 *              in all dimensions except the last. layer: (in - mean) / sqrt(variance + epsilon);
 *              rms: in / sqrt(mean of squares + epsilon); then times weight, plus bias
 *     rotary   rotary position embedding: the first `size` elements of the last dimension are
 *              rotated in pairs: (x, y) becomes (x cos - y sin, x sin + y cos); the others are
 *              copied. Cos and sin have in's shape, except that the last dimension is size / 2.
 *              halves: x is element i, y is element i + size / 2;
 *              pairs: x is element 2 i, y is element 2 i + 1
 *
 * Floats narrower than 32 bits are computed in f32 and rounded once. NaN and infinity in IN follow
 * the formulas by the rules of IEEE 754. */
enum { TN_EACH_IN = 0, TN_EACH_OUT = 1, TN_EACH_OTHER = 2 };
enum { TN_NORM_WEIGHT = 2, TN_NORM_BIAS = 3, TN_ROTARY_COS = 2, TN_ROTARY_SIN = 3 };

#define TN_UNARY_LIST(X)          \
    X(NEG, 0, "neg")              \
    X(ABS, 1, "abs")              \
    X(SQRT, 2, "sqrt")            \
    X(RSQRT, 3, "rsqrt")          \
    X(EXP, 4, "exp")              \
    X(LOG, 5, "log")              \
    X(TANH, 6, "tanh")            \
    X(SIGMOID, 7, "sigmoid")      \
    X(RELU, 8, "relu")            \
    X(GELU, 9, "gelu")            \
    X(GELU_TANH, 10, "gelu-tanh") \
    X(SILU, 11, "silu")

/* Integer division truncates towards zero; division by zero gives 0. If an operand is NaN, max and
 * min are NaN. */
#define TN_BINARY_LIST(X) \
    X(ADD, 0, "add")      \
    X(SUB, 1, "sub")      \
    X(MUL, 2, "mul")      \
    X(DIV, 3, "div")      \
    X(MAX, 4, "max")      \
    X(MIN, 5, "min")

/* Integer sums wrap in out's dtype. Over zero elements: sum is 0, prod 1, mean NaN; max and min
 * fail. If an element is NaN, max and min are NaN. */
#define TN_REDUCE_LIST(X) \
    X(SUM, 0, "sum")      \
    X(MEAN, 1, "mean")    \
    X(MAX, 2, "max")      \
    X(MIN, 3, "min")      \
    X(PROD, 4, "prod")

#define TN_NORM_LIST(X)   X(LAYER, 0, "layer") X(RMS, 1, "rms")
#define TN_ROTARY_LIST(X) X(HALVES, 0, "halves") X(PAIRS, 1, "pairs")

enum {
#define TN_OP_WORD_(NAME, number, word) TN_UNARY_##NAME = number,
    TN_UNARY_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_UNARY_COUNT
};
enum {
#define TN_OP_WORD_(NAME, number, word) TN_BINARY_##NAME = number,
    TN_BINARY_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_BINARY_COUNT
};
enum {
#define TN_OP_WORD_(NAME, number, word) TN_REDUCE_##NAME = number,
    TN_REDUCE_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_REDUCE_COUNT
};
enum {
#define TN_OP_WORD_(NAME, number, word) TN_NORM_##NAME = number,
    TN_NORM_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_NORM_COUNT
};
enum {
#define TN_OP_WORD_(NAME, number, word) TN_ROTARY_##NAME = number,
    TN_ROTARY_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_ROTARY_COUNT
};

#define TN_EACH_USES_LIST(X)                                                                  \
    X(STRIDES, 0, "strides")     /* an operand is not contiguous, not counting broadcasts  */ \
    X(BROADCAST, 1, "broadcast") /* an input has stride 0; not weight, bias of norm        */ \
    X(OUT_DTYPE, 2, "out")       /* out's dtype differs from in's; not for cast            */ \
    X(IN_PLACE, 3, "in-place")   /* out is in: same memory, same layout                    */ \
    X(LOG, 4, "log")             /* softmax                                                */ \
    X(WEIGHT, 5, "weight")       /* norm                                                   */ \
    X(BIAS, 6, "bias")           /* norm                                                   */ \
    X(PARTIAL, 7, "partial")     /* rotary: part of the last dimension is only copied      */
enum {
#define TN_OP_WORD_(NAME, bit, word) TN_EACH_USES_##NAME = 1 << bit,
    TN_EACH_USES_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
};
enum { TN_EACH_DIM_ALL = 1 };

typedef struct tn_each_op {
    int32_t kind;     /* TN_UNARY_..., TN_BINARY_..., TN_REDUCE_..., TN_NORM_..., TN_ROTARY_... */
    int32_t axes;     /* reduce                                                                 */
    int64_t elements; /* number of elements of out                                              */
    int64_t rows;     /* softmax, norm, rotary: product of all dimensions but the last; reduce:
                         elements */
    int64_t size;     /* softmax, norm: the last dimension; rotary: the part of it that is
                         rotated; reduce: elements reduced into one */
    double value;     /* fill: the number; norm: epsilon */
    double imaginary; /* fill of a complex dtype         */
} tn_each_op;

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
 *   - In attention-backward, an excluded key contributes to no gradient of its query and gets no
 *     gradient from it; the same holds for all keys of a query whose LSE is -infinity. A weight that
 *     dropout dropped contributes nothing to DV and gets nothing from V.
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
 * attention-backward takes OUT and LSE as inputs and DOUT with OUT's shape, and computes DQ, DK, DV
 * with the shapes of Q, K and V. attention-merge combines two results over different keys: computes
 * (OUT, LSE) from (IN, LSE_IN) and (OTHER, LSE_OTHER), all with the shapes of OUT and LSE. */
enum {
    TN_ATTENTION_Q = 0,
    TN_ATTENTION_K,
    TN_ATTENTION_V,
    TN_ATTENTION_OUT,
    TN_ATTENTION_LSE,
    TN_ATTENTION_MASK,
    TN_ATTENTION_SINKS,
    TN_ATTENTION_STARTS_Q,
    TN_ATTENTION_STARTS_K,
    TN_ATTENTION_LENGTHS,
    TN_ATTENTION_PAGES,
    TN_ATTENTION_OPERANDS,
    TN_ATTENTION_DOUT = TN_ATTENTION_SINKS, /* attention-backward from here on */
    TN_ATTENTION_DQ,
    TN_ATTENTION_DK,
    TN_ATTENTION_DV,
    TN_ATTENTION_BACKWARD_OPERANDS
};
enum {
    TN_MERGE_IN = 0,
    TN_MERGE_LSE_IN,
    TN_MERGE_OTHER,
    TN_MERGE_LSE_OTHER,
    TN_MERGE_OUT,
    TN_MERGE_LSE,
    TN_MERGE_OPERANDS
};

#define TN_ATTENTION_USES_LIST(X)                                                           \
    X(WINDOW, 0, "window")     /* position restricts the keys that queries see           */ \
    X(MASK, 1, "mask")         /* a boolean mask                                         */ \
    X(ADDITIVE, 2, "additive") /* a float mask                                           */ \
    X(GROUPS, 3, "groups")     /* several heads share keys and values                    */ \
    X(SOFTCAP, 4, "softcap")                                                                \
    X(SINKS, 5, "sinks")                                                                    \
    X(LSE, 6, "lse")                                                                        \
    X(DROPOUT, 7, "dropout")                                                                \
    X(PACKED, 8, "packed")                                                                  \
    X(LENGTHS, 9, "lengths")                                                                \
    X(PAGES, 10, "pages")                                                                   \
    X(VALUE_SIZE, 11, "dv")   /* the sizes of values and keys differ                    */  \
    X(STRIDES, 12, "strides") /* last dimension of Q, K, V, OUT not contiguous          */  \
    X(OUT_DTYPE, 13, "out")   /* out is f32 and the operands are 16-bit                 */  \
    X(OFFSET, 14, "shift")    /* queries do not begin at position 0                     */
enum {
#define TN_OP_WORD_(NAME, bit, word) TN_ATTENTION_USES_##NAME = 1 << bit,
    TN_ATTENTION_USES_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
};
enum {
    TN_ATTENTION_DIM_BATCH = 1,
    TN_ATTENTION_DIM_HEADS = 2, /* and groups */
    TN_ATTENTION_DIM_QUERIES = 4,
    TN_ATTENTION_DIM_KEYS = 8
};
enum { TN_CORNER_TOP_LEFT = 0, TN_CORNER_BOTTOM_RIGHT = 1 };

/* Backend names for attention. TORCH_SDPA stands for a family (sdpa.h); with NO_ATTENTION every
 * call is refused. Numbers are never reused. */
#define TN_BACKEND_LIST(X)      \
    X(FLASH_ATTN, 1)            \
    X(SLIDING_TILE_ATTN, 2)     \
    X(TORCH_SDPA, 3)            \
    X(SAGE_ATTN, 4)             \
    X(VIDEO_SPARSE_ATTN, 5)     \
    X(NO_ATTENTION, 6)          \
    X(SAGE_ATTN_THREE, 7)       \
    X(ATTN_QAT_INFER, 8)        \
    X(ATTN_QAT_TRAIN, 9)        \
    X(VIDEO_SPARSE_ATTN_H3, 10) \
    X(BSA_ATTN, 11)             \
    X(VMOBA_ATTN, 12)           \
    X(SLA_ATTN, 13)             \
    X(SAGE_SLA_ATTN, 14)        \
    X(NABLA_ATTN, 15)
enum {
    TN_BACKEND_AUTOMATIC = -1, /* in a request: the fastest, ignoring settings                 */
    TN_BACKEND_NONE = 0,       /* in a request: none; in an answer: a backend without a number */
#define TN_OP_WORD_(NAME, number) TN_BACKEND_##NAME = number,
    TN_BACKEND_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
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
    uint64_t seed, offset;
} tn_attention_op;

/* The descriptor. */
typedef struct tn_op {
    size_t struct_size;
    int32_t kind;  /* TN_OP_...                                 */
    int32_t count; /* number of operands, including absent ones */
    uint64_t uses;
    tn_layout operand[TN_OP_OPERANDS_MAX];
    union {
        tn_matmul_op matmul;
        tn_each_op each;
        tn_attention_op attention; /* not used by attention-merge */
        int64_t room[32];
    } as;
} tn_op;
TN_ENDS_WITH(tn_op, as);

/* Return the part for this kind of op; NULL for an op of another kind. */
static inline const tn_matmul_op *tn_op_matmul(const tn_op *op)
{
    return op->kind == TN_OP_MATMUL ? &op->as.matmul : NULL;
}

static inline const tn_attention_op *tn_op_attention(const tn_op *op)
{
    return op->kind == TN_OP_ATTENTION || op->kind == TN_OP_ATTENTION_BACKWARD ? &op->as.attention
                                                                               : NULL;
}

static inline const tn_each_op *tn_op_each(const tn_op *op)
{
    return op->kind >= TN_OP_PERMUTE && op->kind <= TN_OP_ROTARY ? &op->as.each : NULL;
}

TN_END_DECLS

#endif
