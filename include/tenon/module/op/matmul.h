/* matmul: out = activation(alpha * A B + beta * out + bias).
 *
 * A is [batch..., m, k], B [batch..., k, n], out [batch..., m, n], all of the same rank. Broadcast
 * operands have stride 0; transposed operands have transposed strides. A bias has out's shape, with
 * stride 0 where it is broadcast. If beta is 0, out is never read; if alpha is 0, A and B may or
 * may not be read. Sums, and everything else before the final rounding, are computed in `acc`. NaN and
 * infinity in what is read follow IEEE 754.
 *
 * A and B of 8-bit floats may have f32 scales: the sum for an output is multiplied by both. They
 * have out's shape; SCALE_A has stride 0 along n, SCALE_B along m, and both wherever one number is
 * broadcast.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_MATMUL_H
#define TENON_MODULE_OP_MATMUL_H

#include "../activation.h"
#include "../op.h"

TN_BEGIN_DECLS

enum { TN_OP_MATMUL = 1 };

enum {
    TN_MATMUL_A = 0,
    TN_MATMUL_B = 1,       /* A's dtype; beside an 8-bit float, either of the two        */
    TN_MATMUL_OUT = 2,     /* default: A's dtype; f32 for 8-bit floats, i32 for i8       */
    TN_MATMUL_BIAS = 3,    /* out's dtype                                                */
    TN_MATMUL_SCALE_A = 4, /* f32                                                        */
    TN_MATMUL_SCALE_B = 5, /* f32                                                        */
    TN_MATMUL_OPERANDS
};

enum {
    TN_MATMUL_USES_BATCH = 1 << 0,       /* more than one matrix                               */
    TN_MATMUL_USES_BROADCAST = 1 << 1,   /* a matrix of A or B is broadcast over the batch     */
    TN_MATMUL_USES_TRANSPOSE = 1 << 2,   /* A or B is column-major                             */
    TN_MATMUL_USES_STRIDES = 1 << 3,     /* an operand has neither contiguous rows nor columns */
    TN_MATMUL_USES_ALPHA = 1 << 4,       /* alpha is not 1                                     */
    TN_MATMUL_USES_BETA = 1 << 5,        /* beta is not 0                                      */
    TN_MATMUL_USES_BIAS = 1 << 6,        /* BIAS is present                                    */
    TN_MATMUL_USES_ACTIVATION = 1 << 7,  /* activation is not TN_ACT_NONE                      */
    TN_MATMUL_USES_OUT_DTYPE = 1 << 8,   /* out: f32 for f16, bf16, i8; f16 or bf16 for 8 bits */
    TN_MATMUL_USES_ACC = 1 << 9,         /* acc: A's dtype for f16 and bf16; f64 for f32       */
    TN_MATMUL_USES_SCALES = 1 << 10,     /* SCALE_A or SCALE_B is present                      */
    TN_MATMUL_USES_FAR_FACTORS = 1 << 11 /* alpha or beta is outside f32's range, where f32 is
                                            multiplied */
};

/* Dimensions for which one plan of a kernel may serve any value. */
enum { TN_MATMUL_DIM_M = 1, TN_MATMUL_DIM_N = 2, TN_MATMUL_DIM_K = 4, TN_MATMUL_DIM_BATCH = 8 };

typedef struct tn_matmul_op {
    int64_t m, n, k;
    int64_t matrices;   /* product of the batch dimensions                               */
    int32_t batch_rank; /* number of dimensions before the last two                      */
    int32_t activation; /* TN_ACT_...                                                    */
    tn_dtype acc;       /* default: f32 for 8- and 16-bit floats, i32 for i8, else A's dtype */
    int32_t grouped;    /* 1: one of several queued at once; the computation is the same */
    double alpha;
    double beta;
} tn_matmul_op;
TN_PARAMS_FIT(tn_matmul_op);

/* NULL for an op of another operator. */
static inline const tn_matmul_op *tn_op_matmul(const tn_op *op)
{
    return op->kind == TN_OP_MATMUL ? TN_PARAMS(op, matmul) : NULL;
}

TN_END_DECLS

#endif
