/* The arguments of attention_math.cu, for the host and the device. */
#ifndef CUDA_ATTENTION_MATH_ARGS_H
#define CUDA_ATTENTION_MATH_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "attention_args.h"
#endif

/* The parts of the workspace, in order. A lot is a group of keys of a sequence, with `rows` queries of all heads that
 * share them, numbered as in cuda_attention_args. Matrices are dense, with lines of whole 8 elements. */
enum {
    CUDA_MATH_Q,       /* [lots, rows, line] */
    CUDA_MATH_K,       /* [lots, keys, line] */
    CUDA_MATH_V,       /* [lots, keys, value_line]; non-finite elements are 0 */
    CUDA_MATH_SCORES,  /* [lots, rows, key_line] */
    CUDA_MATH_WEIGHTS, /* the same, in the operands' dtype, not divided by their sum */
    CUDA_MATH_SUMS,    /* [lots, rows, value_line]: weights times v */
    CUDA_MATH_FACTORS, /* [lots, rows]: of a row's sums */
    CUDA_MATH_FLAGS,   /* int [lots]: 1 if v had a non-finite element */
    CUDA_MATH_PARTS
};

typedef struct cuda_math_args {
    cuda_attention_args at;
    void *parts[CUDA_MATH_PARTS];
    int lots, rows;
    int line, value_line, key_line;
    int values; /* math_gather: 0 copies q and k and clears flags, 1 copies v */
} cuda_math_args;

#endif
