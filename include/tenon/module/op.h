/* Ops: what is to be computed, as a descriptor without data. The core makes and checks it, kernels
 * read it.
 *
 * Operands have a layout each: dtype, shape, strides. What an op asks beyond the plain computation is
 * a bit of `uses`; a kernel that does not honour every one of them is not asked. So a kernel that was
 * built before a feature existed can never ignore it.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_H
#define TENON_MODULE_OP_H

#include "dtype.h"

TN_BEGIN_DECLS

/*  Name, number, word of the problem's text. Numbers are never reused. */
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

/* Most dimensions and operands of an op. */
#define TN_OP_RANK_MAX     8
#define TN_OP_OPERANDS_MAX 16

/* Alignments are powers of two up to this one. */
#define TN_OP_ALIGNMENT_MAX 64

/* One operand. Absent: dtype 0, and nothing else of it is set. */
typedef struct tn_layout {
    tn_dtype dtype;
    int32_t rank;
    int64_t alignment; /* of its first element, in bytes; for a kernel, at most the row's */
    int64_t shape[TN_OP_RANK_MAX];  /* the first `rank` of them */
    int64_t stride[TN_OP_RANK_MAX]; /* in elements; 0 where one element serves a whole dimension */
} tn_layout;

/* matmul: out = activation(alpha * A B + beta * out + bias). A is [batch..., m, k], B [batch..., k, n],
 * out [batch..., m, n], all of one rank: what is broadcast has stride 0, what is transposed has the
 * strides of that. A bias has out's shape and strides of 0 where it is broadcast. With beta 0, what is
 * in out is never read; with alpha 0, A and B may be read or not. Sums are made in `acc`, and all else up to
 * the last rounding.
 *
 * A and B of 8-bit floats may have scales of f32: what is summed for an output is multiplied by both. They have
 * out's shape; SCALE_A has strides of 0 along n, SCALE_B along m, and wherever else one number serves all. */
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
    X(BROADCAST, 1, "broadcast") /* one matrix of A or B serves several                  */ \
    X(TRANSPOSE, 2, "transpose") /* A or B lies by columns                               */ \
    X(STRIDES, 3, "strides")     /* neither rows nor columns of an operand are together  */ \
    X(ALPHA, 4, "alpha")         /* alpha is not 1                                       */ \
    X(BETA, 5, "beta")           /* beta is not 0                                        */ \
    X(BIAS, 6, "bias")                                                                      \
    X(ACTIVATION, 7, "activation")                                                          \
    X(OUT_DTYPE, 8, "out") /* out is of another dtype than is usual for A and B    */       \
    X(ACC, 9, "acc")       /* sums are asked for in another dtype than is usual    */       \
    X(SCALES, 10, "scales")                                                                 \
    X(FAR_FACTORS, 11,                                                                      \
      "far-factors") /* alpha or beta is outside f32's range, where f32 is multiplied */
enum {
#define TN_OP_WORD_(NAME, bit, word) TN_MATMUL_USES_##NAME = 1 << bit,
    TN_MATMUL_USES_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
};

/* Dimensions that one plan of a kernel may serve at any value. */
enum { TN_MATMUL_DIM_M = 1, TN_MATMUL_DIM_N = 2, TN_MATMUL_DIM_K = 4, TN_MATMUL_DIM_BATCH = 8 };

typedef struct tn_matmul_op {
    int64_t m, n, k;
    int64_t matrices;   /* the product of the batch's dimensions */
    int32_t batch_rank; /* dimensions before the last two        */
    int32_t activation; /* TN_ACT_...                            */
    tn_dtype acc;       /* what products are summed in           */
    int32_t grouped;    /* 1: of several that are queued at once; what is computed is the same */
    double alpha;
    double beta;
} tn_matmul_op;

/* Ops on elements and on rows of them. Layouts have one rank and one shape, but where said.
 *
 *     permute  out = in, of one dtype; in's dimensions are already in out's order
 *     cast     out = in as another dtype: floats to nearest even; to integers cut towards zero, what is
 *              too great becomes the greatest or least, a NaN becomes 0; to bool: not zero, in either
 *              part; else of complex numbers the real part
 *     fill     out = value; there is no IN
 *     unary    out = f(in)
 *     binary   out = f(in, other)
 *     reduce   out's last `axes` dimensions are 1, with stride 0: over them all of in's are taken
 *     softmax  along the last dimension: exp(in - max) / sum; with the bit LOG its logarithm
 *     norm     along the last dimension, of `size`; weight and bias have in's shape, with stride 0 in all
 *              dimensions but the last. layer: (in - mean) / sqrt(variance + epsilon);
 *              rms: in / sqrt(mean of squares + epsilon); then times weight, plus bias
 *     rotary   the first `size` of the last dimension are turned in pairs (x, y) to
 *              (x cos - y sin, x sin + y cos), the others are copied. Cos and sin have in's shape but for
 *              the last dimension, which is size / 2. halves: x is element i, y element i + size / 2;
 *              pairs: x is element 2 i, y element 2 i + 1
 *
 * Floats narrower than 32 bits are computed in f32 and rounded once. */
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

/* Division of integers cuts towards zero; by zero it gives 0. max and min of a NaN are a NaN. */
#define TN_BINARY_LIST(X) \
    X(ADD, 0, "add")      \
    X(SUB, 1, "sub")      \
    X(MUL, 2, "mul")      \
    X(DIV, 3, "div")      \
    X(MAX, 4, "max")      \
    X(MIN, 5, "min")

/* Sums of integers wrap in out's dtype. Of nothing: sum 0, prod 1, mean a NaN; max and min refuse. */
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
    X(STRIDES, 0, "strides")     /* an operand is not dense, apart from what is broadcast  */ \
    X(BROADCAST, 1, "broadcast") /* an input has a stride of 0; not weight, bias of norm   */ \
    X(OUT_DTYPE, 2, "out")       /* out is of another dtype than in; not of cast           */ \
    X(IN_PLACE, 3, "in-place")   /* out is in: same memory, same layout                    */ \
    X(LOG, 4, "log")             /* softmax                                                */ \
    X(WEIGHT, 5, "weight")       /* norm                                                   */ \
    X(BIAS, 6, "bias")           /* norm                                                   */ \
    X(PARTIAL, 7, "partial")     /* rotary: some of the last dimension is only copied      */
enum {
#define TN_OP_WORD_(NAME, bit, word) TN_EACH_USES_##NAME = 1 << bit,
    TN_EACH_USES_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
};
enum { TN_EACH_DIM_ALL = 1 };

typedef struct tn_each_op {
    int32_t kind;     /* TN_UNARY_..., TN_BINARY_..., TN_REDUCE_..., TN_NORM_..., TN_ROTARY_...  */
    int32_t axes;     /* reduce                                                                  */
    int64_t elements; /* of out                                                                  */
    int64_t rows;     /* softmax, norm, rotary: all dimensions but the last; reduce: elements    */
    int64_t size;     /* softmax, norm: the last dimension; rotary: what is turned of it; reduce:
                         elements that go into one                                               */
    double value;     /* fill: the number; norm: epsilon                                         */
    double imaginary; /* fill of complex numbers                                                 */
} tn_each_op;

/* attention: of each query the values of the keys that it sees, by how near they are.
 *
 *     score  = cap(scale q . k) + mask           cap(x) = softcap tanh(x / softcap), or x
 *     out    = sum of exp(score - lse) v         over the keys that are seen
 *     lse    = ln(sum of exp(score))             natural; a sink is one more score in it, without a value
 *
 * A query that sees no key has out 0 and lse -infinity (its sink, with one). Scores and sums are made in
 * f32, of f64 in f64; 16-bit operands are not rounded between, but for weights that go into the second
 * product, which may be rounded to their dtype.
 *
 * Whichever way they lie, Q is [batch, heads, queries, size], K [batch, groups, keys, size], V [batch,
 * groups, keys, value size], OUT [batch, heads, queries, value size], LSE [batch, heads, queries]; head h
 * reads group h / (heads / groups). MASK is [batch, heads, queries, keys], with strides of 0 where it is
 * broadcast: of bool, true is seen; of floats, it is added. SINKS is [heads].
 *
 * A key is excluded for a query by its place, by a length, by false in a mask of bool or by -infinity in a mask
 * of floats; all other keys are seen. Every kernel must hold these rules, to which NaN and infinity in K and V
 * are no exception:
 *
 *   - An excluded key contributes nothing: results are as if it were not there, whatever K and V hold. A tile
 *     that has excluded keys must not multiply their values by weights of 0.
 *   - A key that is seen contributes its weight times its value by the rules of IEEE 754, also where the weight
 *     is 0, because the score is -infinity or because exp underflows. So a NaN in V is a NaN in its column of
 *     every query that sees it. An infinity in V is that infinity, or a NaN where the weight is below what the
 *     kernel computes with: 2^-126 of the greatest weight, 2^-1022 of f64, 2^-24 of weights that are rounded to
 *     f16.
 *   - A weight that dropout does not keep is part of lse and contributes nothing to out.
 *   - A query whose scores are all -infinity counts as one that sees no key.
 *   - In attention-backward an excluded key contributes to no gradient of its query and gets nothing from it; nor
 *     does a query whose LSE is -infinity. A weight that dropout did not keep gives nothing to DV and takes
 *     nothing from V.
 *
 * Packed, sequences lie one behind the other: Q, OUT and LSE have one batch and all queries, K and V all
 * keys; STARTS_Q and STARTS_K are [batch + 1] of i32, where each begins and the last ends. LENGTHS are
 * [batch] of i32: so many keys of each are there, the rest is never read. PAGES is [batch, pages of a
 * sequence] of i32: K and V are [pages, groups, page, size], and key j of sequence b is row j % page of
 * the page PAGES[b][j / page].
 *
 * Key j is seen by query i when, with d = i + shift (+ keys - queries of the sequence, at the bottom
 * right corner), j <= d + right and j >= d - left; -1: no bound on that side.
 *
 * Dropout keeps weight (b, h, i, j) when the number of that place, ((b heads + h) queries + i) keys + j
 * of the uniform f32 numbers of Philox with `seed` from `offset` on, is at least `dropout`, and divides
 * what is kept by 1 - dropout.
 *
 * attention-backward takes OUT and LSE as inputs, DOUT of OUT's shape, and gives DQ, DK, DV of the shapes
 * of Q, K and V. attention-merge makes one of two parts, each over keys of its own: (OUT, LSE) of
 * (IN, LSE_IN) and (OTHER, LSE_OTHER), all of OUT's and LSE's shapes. */
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
    TN_ATTENTION_DOUT = TN_ATTENTION_SINKS, /* of attention-backward, from here on */
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
    X(WINDOW, 0, "window")     /* queries see some keys only, by their places            */ \
    X(MASK, 1, "mask")         /* a mask of bool                                         */ \
    X(ADDITIVE, 2, "additive") /* a mask of floats                                       */ \
    X(GROUPS, 3, "groups")     /* several heads share keys and values                    */ \
    X(SOFTCAP, 4, "softcap")                                                                \
    X(SINKS, 5, "sinks")                                                                    \
    X(LSE, 6, "lse")                                                                        \
    X(DROPOUT, 7, "dropout")                                                                \
    X(PACKED, 8, "packed")                                                                  \
    X(LENGTHS, 9, "lengths")                                                                \
    X(PAGES, 10, "pages")                                                                   \
    X(VALUE_SIZE, 11, "dv")   /* values are of another size than keys                   */  \
    X(STRIDES, 12, "strides") /* the last dimension of Q, K, V, OUT is not together     */  \
    X(OUT_DTYPE, 13, "out")   /* out is f32 of 16-bit operands                          */  \
    X(OFFSET, 14, "shift")    /* queries do not begin at place 0                        */
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

/* Names that attention is asked for by: TORCH_SDPA is one of a family (sdpa.h), under NO_ATTENTION every call
 * is refused. Numbers are never reused. */
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
    TN_BACKEND_AUTOMATIC = -1, /* of a request: whatever computes best, and no setting is asked */
    TN_BACKEND_NONE = 0,       /* of a request: none; of an answer: a backend without a number  */
#define TN_OP_WORD_(NAME, number) TN_BACKEND_##NAME = number,
    TN_BACKEND_LIST(TN_OP_WORD_)
#undef TN_OP_WORD_
        TN_BACKEND_COUNT
};

typedef struct tn_attention_op {
    int64_t batch;         /* sequences                                             */
    int64_t heads, groups; /* of Q; of K and V                                      */
    int64_t queries, keys; /* of a sequence, packed or not; the most that one has   */
    int64_t size, value_size;
    int64_t page; /* keys of a page; 0: none                               */
    int64_t left, right, shift;
    int32_t corner;  /* TN_CORNER_...                                         */
    int32_t backend; /* TN_BACKEND_... that it is asked for by; 0: any        */
    double scale, softcap, dropout;
    uint64_t seed, offset;
} tn_attention_op;

/* The descriptor. */
typedef struct tn_op {
    size_t struct_size;
    int32_t kind;  /* TN_OP_...                         */
    int32_t count; /* of operands, absent ones included */
    uint64_t uses;
    tn_layout operand[TN_OP_OPERANDS_MAX];
    union {
        tn_matmul_op matmul;
        tn_each_op each;
        tn_attention_op attention; /* of attention-merge none of it */
        int64_t room[32];
    } as;
} tn_op;
TN_ENDS_WITH(tn_op, as);

/* The part of its kind; NULL for an op of another. */
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
