/* Random equations of einsum, their operands, and the results of loops over all labels. */
#ifndef TENON_TEST_EINSUM_CASES_H
#define TENON_TEST_EINSUM_CASES_H

#include "test.h"

#include "tenon/tenon.h"

#include <stdbool.h>

enum { LABELS = 7, TERMS = 5, DIMS = 4, ROOM = 1 << 16 };

/* A random number below `below`. */
uint32_t roll(uint32_t below);

/* A tensor with memory, shape and strides of its own. */
typedef struct piece {
    _Alignas(64) char memory[ROOM];
    int64_t shape[TN_TENSOR_NDIM_MAX], strides[TN_TENSOR_NDIM_MAX];
    tn_tensor tensor;
} piece;

extern piece pieces[TERMS], result;

/* A random equation and its operands. Labels a, b, ...; "..." is a list of labels too. */
typedef struct problem {
    char equation[128];
    int32_t terms;
    int32_t axes[TERMS + 1][TN_TENSOR_NDIM_MAX]; /* labels of the dimensions; the last is out */
    int64_t size[LABELS + 2];                    /* labels from LABELS on are those of "..." */
    const tn_tensor *operands[TERMS];
    tn_dtype dtype;
} problem;

/* A tensor in the piece's memory, whose shape and strides are the piece's. */
tn_tensor *make(piece *p, tn_dtype dtype, int32_t ndim);

/* A random equation, its operands in `pieces`, and out in `result`. */
void roll_problem(problem *p, tn_dtype dtype);

/* A problem of an equation with labels a to g, whose operands and out are dense. */
void set_problem(tn_dtype dtype, const char *equation, const int64_t *sizes, problem *p);

/* Compares the result with loops over all labels. */
void expect_result(const problem *p);

/* Poisons out's memory: NaN in every float, and nothing that a sum gives in integers. */
void poison(void);

/* The bytes of out's memory outside its elements are as they were. */
void expect_gaps(void);

/* A dense tensor of f64; sizes end with -1. */
const tn_tensor *dense(piece *p, const int64_t *sizes);

#define SIZES(...) ((const int64_t[]){__VA_ARGS__, -1})

/* Arguments without options; out is `result`. */
tn_einsum_args args_of(const char *equation, const tn_tensor *const *operands, int32_t count);

#endif
