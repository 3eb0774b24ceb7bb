/* Shared by the elementwise operators: the kernels of elementwise.cu, which compute an expression for each element
 * of out, with any strides. */
#ifndef CUDA_KERNELS_ELEMENTWISE_H
#define CUDA_KERNELS_ELEMENTWISE_H

#include "layout.h"

extern const cuda_unit cuda_elementwise_unit;

/* A variant of the kernels, in terms of their source. */
typedef struct cuda_elementwise {
    const char *in, *out; /* element types; without inputs, `in` is ignored */
    const char *compute;  /* the result as an expression of the inputs a and b: "of_add(a,b)" */
    int inputs;           /* 0, 1 or 2 */
    bool wraps;           /* the result is converted to out without saturation */
    bool keeps_nans;      /* NaNs keep their upper bits, as in cast */
} cuda_elementwise;

/* Walks over out and the first `inputs` inputs of the op, and fills in everything of `args` but the addresses. */
void cuda_elementwise_walk(const tn_op *op, int inputs, tn_walk *walk, cuda_each_args *args);

/* Gets the kernel of the variant for the run's op, and the number of its blocks. */
tn_status cuda_elementwise_kernel(const tn_run *run, const cuda_elementwise *variant,
                                  const tn_walk *walk, cuda_plan *plan, tn_error *err);

/* A row's `plan`, for a variant: both of the above, in a new plan. */
tn_status cuda_elementwise_plan(const tn_run *run, const cuda_elementwise *variant, void **out,
                                uint64_t *out_bytes, tn_error *err);

/* A row's `run`. */
tn_status cuda_elementwise_run(const tn_run *run, tn_error *err);

/* Checks that the kernels have out's dtype, and that operands are aligned. */
tn_status cuda_elementwise_admit_out(const tn_query *query, tn_refusal *why);

/* The same; and f64 is only computed to f64, because computation is in in's type, and integers only to their own
 * dtype. */
tn_status cuda_elementwise_admit_same(const tn_query *query, tn_refusal *why);

/* Numerics of kernels: with the same rounding as every other device; with the device's own math
 * functions, which round differently. */
#define CUDA_EVERYWHERE (CUDA_REPEATS | TN_NUM_CROSS_DEVICE)
#define CUDA_REPEATS    (TN_NUM_RUN_TO_RUN | TN_NUM_BATCH_INVARIANT)

#endif
