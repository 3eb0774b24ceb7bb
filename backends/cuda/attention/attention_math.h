/* Attention by two matrix products of a library and kernels of our own between them; scores are in workspace. Rows with
 * TN_NUM_REDUCED_REDUCTION store scores in the operands' dtype, others in f32 or f64. */
#ifndef CUDA_ATTENTION_MATH_H
#define CUDA_ATTENTION_MATH_H

#include "attention_cuda.h"
#include "attention_math_args.h"

/* Checks that nothing is empty, and that the kernels can index all counts. Must precede all other functions: costs are
 * asked for before `admit`. */
tn_status cuda_math_admit_counts(const tn_op *op, tn_refusal *why);

/* Returns the workspace without that of the products. The type is double, which no size of an op overflows. */
double cuda_math_bytes(const tn_kernel_row *row, const tn_op *op);

/* The two products as ops of matmul: scores of queries and keys, sums of weights and values. */
void cuda_math_products(const tn_kernel_row *row, const tn_op *op, tn_op *scores, tn_op *sums);

/* Checks the problem with cuda_math_admit_counts, and that the row `product` supports both products; notes the workspace in `why`. */
tn_status cuda_math_admit(const tn_kernel_row *row, const tn_kernel_row *product,
                          const tn_query *query, tn_refusal *why);

/* Returns the workspace, including that of the products. */
uint64_t cuda_math_workspace(const tn_kernel_row *row, const tn_kernel_row *product,
                             const tn_query *query);

typedef struct cuda_math {
    const tn_kernel_row *product;
    tn_op ops[2];
    void *plans[2];
    uint64_t parts[CUDA_MATH_PARTS +
                   1]; /* where each begins in the workspace; the last: the products' */
    cuda_kernel *gather, *weights, *scatter;
} cuda_math;

/* Plans run with the run's library, which is that of `product`. */
tn_status cuda_math_plan(const tn_run *run, const tn_kernel_row *product, void **out,
                         uint64_t *out_bytes, tn_error *err);
void cuda_math_release(const tn_run *run, void *any);
tn_status cuda_math_run(const tn_run *run, tn_error *err);

#endif
