/* Ops: descriptors of a computation, without data. The core creates and checks them; kernels read
 * them.
 *
 * This header has what all operators share. Each operator has a header of its own, op/NAME.h: its
 * number, the indices of its operands, its USES bits, its parameters and what it computes. A new
 * operator adds such a header and changes none. A kernel includes the header of its operator.
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

/* Operators are numbered from 1 to TN_OP_KIND_MAX - 1: TN_OP_... of the operator's header. Numbers
 * are never reused. */
#define TN_OP_NONE     0
#define TN_OP_KIND_MAX 64

/* Maximum number of dimensions and of operands of an op. An operator with more tensors than this,
 * such as an RNN with weights for each layer, has them packed in one operand. */
#define TN_OP_RANK_MAX     8
#define TN_OP_OPERANDS_MAX 24

/* Alignments are powers of two, at most this. */
#define TN_OP_ALIGNMENT_MAX 64

/* Maximum size of an operator's parameters, in bytes. */
#define TN_OP_PARAMS_MAX 256

/* One operand. If it is absent, dtype is 0 and no other field is set. */
typedef struct tn_layout {
    tn_dtype dtype;
    int32_t rank;
    int64_t alignment; /* of its first element, in bytes; kernels see at most their row's */
    int64_t shape[TN_OP_RANK_MAX];  /* the first `rank` of them */
    int64_t stride[TN_OP_RANK_MAX]; /* in elements; 0 along broadcast dimensions */
} tn_layout;

/* Room for the parameters of any operator, aligned for them. */
typedef union tn_op_params {
    int64_t words[TN_OP_PARAMS_MAX / 8];
    unsigned char bytes[TN_OP_PARAMS_MAX];
} tn_op_params;

/* The descriptor. `params` holds the struct of parameters that the operator's header declares. */
typedef struct tn_op {
    size_t struct_size;
    int32_t kind;  /* TN_OP_...                                 */
    int32_t count; /* number of operands, including absent ones */
    uint64_t uses;
    tn_layout operand[TN_OP_OPERANDS_MAX];
    tn_op_params params;
} tn_op;
TN_ENDS_WITH(tn_op, params);

/* The parameters of an op whose operator is known: TN_PARAMS(op, matmul)->k. Code that handles
 * several operators compares op->kind first; tn_op_matmul(op) and tn_op_attention(op) return NULL
 * for another operator.
 * TN_PARAMS_MUTABLE is for code that makes ops: the core, tests, a kernel that derives an op from
 * the one it was given. Parameters are accessed as the operator's own struct only, never as
 * `words`: so every access to them has the same type, and copies of a tn_op may alias it, because
 * it contains bytes. */
#define TN_PARAMS(op, noun)         ((const tn_##noun##_op *)(const void *)(op)->params.bytes)
#define TN_PARAMS_MUTABLE(op, noun) ((tn_##noun##_op *)(void *)(op)->params.bytes)

/* Fails to compile if a struct of parameters is too large. */
#define TN_PARAMS_FIT(type) \
    TN_STATIC_ASSERT(sizeof(type) <= TN_OP_PARAMS_MAX, #type " exceeds TN_OP_PARAMS_MAX")

TN_END_DECLS

#endif
