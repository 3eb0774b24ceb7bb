/* Loops over dimensions that several tensors have, which call an operator of elements. */
#ifndef TNI_COMPOSE_EINSUM_NEST_H
#define TNI_COMPOSE_EINSUM_NEST_H

#include "einsum_calls.h"

enum { TNI_EINSUM_TENSORS = 3 };

/* The dimensions of up to three tensors; the last tensor is the output. */
typedef struct tni_einsum_nest {
    int32_t tensors;
    int32_t rank;
    int32_t kept; /* the first dimensions, which are not summed */
    tn_dtype dtype;
    int64_t bytes; /* of an element */
    int64_t size[TNI_EINSUM_DIMS];
    int64_t stride[TNI_EINSUM_TENSORS][TNI_EINSUM_DIMS];
    uintptr_t at[TNI_EINSUM_TENSORS];
} tni_einsum_nest;

/* What is called. */
typedef enum tni_einsum_act {
    TNI_EINSUM_COPY,     /* t[1] = t[0] */
    TNI_EINSUM_MULTIPLY, /* t[2] = t[0] * t[1] */
    TNI_EINSUM_NEGATE,   /* t[1] = -t[0] */
    TNI_EINSUM_PLUS,     /* t[1] += t[0] */
    TNI_EINSUM_MINUS,    /* t[1] -= t[0] */
    TNI_EINSUM_ZERO,     /* t[0] = 0 */
    TNI_EINSUM_SUM       /* t[1] = the sum of t[0] over the dimensions that are not kept */
} tni_einsum_act;

struct tni_einsum_room {
    tni_einsum_nest nest;
    tni_einsum_view copies[TNI_EINSUM_TENSORS]; /* of a matrix product; or of a sum, two */
    tni_einsum_groups groups;
    tni_einsum_list summed; /* of a sum; or the batch of a matrix */
};

/* The dimensions of the last view, merged. */
void tni_einsum_nest_make(const tni_einsum_calls *calls, const tni_einsum_view *const *views,
                          int32_t count, tni_einsum_nest *out);

/* Sorts dimensions by descending strides of a tensor. */
void tni_einsum_nest_sort(tni_einsum_nest *n, int32_t from, int32_t to, int32_t tensor);

/* Merges dimensions from `from` to `to` - 1 that are contiguous in every tensor. Returns the new
 * end. */
int32_t tni_einsum_nest_merge(tni_einsum_nest *n, int32_t from, int32_t to);

/* Removes the dimensions from `from` to `to` - 1. */
void tni_einsum_nest_remove(tni_einsum_nest *n, int32_t from, int32_t to);

/* Complex numbers become pairs of real ones, along one more dimension that is kept: for a copy, a sum
 * of two tensors and a sum over dimensions, that is the same, and more kernels know real numbers.
 * Other numbers do not change. */
void tni_einsum_nest_split_complex(tni_einsum_nest *n);

/* Which real numbers of complex ones a tensor of a nest has: one part, or both in this or the other order. */
typedef enum tni_einsum_part {
    TNI_EINSUM_REAL,
    TNI_EINSUM_IMAGINARY,
    TNI_EINSUM_BOTH,
    TNI_EINSUM_SWAPPED
} tni_einsum_part;

/* Complex numbers become real ones: `parts` of each tensor. If any part is a pair, all are along one more
 * dimension, which repeats single parts. All dimensions must be kept. */
void tni_einsum_nest_take_parts(tni_einsum_nest *n, const tni_einsum_part *parts);

/* Calls the operator, once for each element of the outermost dimensions that it does not support. In
 * EXPLAIN, only once; in MEASURE, not at all. */
tn_status tni_einsum_nest_run(tni_einsum_calls *calls, tni_einsum_nest *n, tni_einsum_act act,
                              tn_error *err);

tn_tensor tni_einsum_tensor(const tni_einsum_calls *calls, tn_dtype dtype, uintptr_t at,
                            int32_t ndim, const int64_t *shape, const int64_t *strides);

/* Calls matmul: t[2] = t[0] t[1]. */
tn_status tni_einsum_call_matmul(const tni_einsum_calls *calls, const tn_tensor *t, tn_error *err);

#endif
