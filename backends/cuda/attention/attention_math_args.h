/* The arguments of attention_math.cu, for the host and the device. */
#ifndef CUDA_ATTENTION_MATH_ARGS_H
#define CUDA_ATTENTION_MATH_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "attention_args.h"
#endif

/* Workspace of attention by two products. A lot is a group of keys of a sequence, with `rows` queries of all heads that
 * share them, numbered as in cuda_attention_args. Matrices are dense, with lines of whole 8 elements. */
typedef struct cuda_math_args {
    cuda_attention_args at;
    void *q;       /* [lots, rows, line] */
    void *k;       /* [lots, keys, line] */
    void *v;       /* [lots, keys, value_line]; non-finite elements are 0 */
    void *scores;  /* [lots, rows, key_line] */
    void *weights; /* the same, in the operands' dtype, not divided by their sum */
    void *sums;    /* [lots, rows, value_line]: weights times v */
    void *factors; /* [lots, rows]: of a row's sums */
    int *flags;    /* [lots]: 1 if v had a non-finite element */
    int lots, rows;
    int line, value_line, key_line;
    int values; /* math_gather: 0 copies q and k and clears flags, 1 copies v */
} cuda_math_args;

#endif
