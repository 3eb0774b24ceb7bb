/* What the elementwise and row-wise operators share, such as unary, reduce and softmax. Each has a
 * header of its own beside this one, which includes this one.
 *
 * All operands have the same rank and shape, unless the operator's header states otherwise. Floats
 * narrower than 32 bits are computed in f32 and rounded once. NaN and infinity in IN follow the
 * formulas by the rules of IEEE 754.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_ELEMENTWISE_H
#define TENON_MODULE_OP_ELEMENTWISE_H

#include "../op.h"

TN_BEGIN_DECLS

/* Operands; those of norm and rotary from 2 on are in their headers. OTHER has in's dtype. */
enum { TN_ELEMENTWISE_IN = 0, TN_ELEMENTWISE_OUT = 1, TN_ELEMENTWISE_OTHER = 2 };

enum {
    TN_ELEMENTWISE_USES_STRIDES = 1 << 0,   /* an operand is not contiguous, not counting
                                               broadcasts */
    TN_ELEMENTWISE_USES_BROADCAST = 1 << 1, /* an input has stride 0; not weight, bias of norm */
    TN_ELEMENTWISE_USES_OUT_DTYPE = 1 << 2, /* in is f16 or bf16, out is f32; reduce has others */
    TN_ELEMENTWISE_USES_IN_PLACE = 1 << 3,  /* out is in: same memory, same layout             */
    TN_ELEMENTWISE_USES_LOG = 1 << 4,       /* softmax                                         */
    TN_ELEMENTWISE_USES_WEIGHT = 1 << 5,    /* norm                                            */
    TN_ELEMENTWISE_USES_BIAS = 1 << 6,      /* norm                                            */
    TN_ELEMENTWISE_USES_PARTIAL = 1 << 7    /* rotary: part of the last dimension is only copied */
};

/* With this bit, one plan of a kernel serves operands of any shape. */
enum { TN_ELEMENTWISE_DIM_ALL = 1 };

typedef struct tn_elementwise_op {
    int32_t kind;     /* TN_UNARY_..., TN_BINARY_..., TN_REDUCE_..., TN_NORM_..., TN_ROTARY_... */
    int32_t axes;     /* reduce                                                                 */
    int64_t elements; /* number of elements of out                                              */
    int64_t rows;     /* softmax, norm, rotary: product of all dimensions but the last; reduce:
                         elements */
    int64_t size;     /* softmax, norm: the last dimension; rotary: the part of it that is
                         rotated; reduce: elements reduced into one */
    double value;     /* fill: the number; norm: epsilon */
    double imaginary; /* fill of a complex dtype         */
} tn_elementwise_op;
TN_PARAMS_FIT(tn_elementwise_op);

TN_END_DECLS

#endif
