/* A matmul as the kernels here see it: a number of products A B of matrices with any strides. */
#ifndef TENON_BACKENDS_CPU_MATMUL_PRODUCT_H
#define TENON_BACKENDS_CPU_MATMUL_PRODUCT_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* The matrices of one operand. dtype 0 if it is absent, as a bias may be. */
typedef struct tni_mm_side {
    int32_t operand; /* TN_MATMUL_...; the batch strides are in its layout */
    tn_dtype dtype;
    int64_t size;        /* bytes of an element */
    int64_t row, column; /* in elements, any sign; 0 if broadcast or if there is only one */
} tni_mm_side;

/* Consecutive matrices that share B are folded into one. If out is column-major, the product is
 * computed as out^T = B^T A^T (`transposed`): then `a` is the op's B and m is its n. */
typedef struct tni_mm_product {
    const tn_op *op;
    int64_t m, n, k;
    int64_t matrices;   /* after folding */
    int32_t batch_rank; /* after folding */
    int32_t activation; /* TN_ACT_... */
    bool transposed;
    tni_mm_side a, b, out, bias;
} tni_mm_product;

/* The first elements of one matrix of each operand; NULL if it is absent or empty. */
typedef struct tni_mm_matrix {
    const char *a, *b;
    char *out;
    const char *bias;
} tni_mm_matrix;

/* Describes an op. Pure. The description is valid as long as the op. */
void tni_mm_describe(const tn_op *op, tni_mm_product *out);

/* Transposes the product: exchanges the roles of A and B. */
void tni_mm_transpose(tni_mm_product *product);

/* Returns whether sums can be kept in out: it has dtype `acc` and contiguous rows. */
static inline bool tni_mm_out_is(const tni_mm_product *product, tn_dtype acc)
{
    return product->out.dtype == acc && (product->out.column == 1 || product->n == 1);
}

/* Finds matrix `index` in the data of a run. */
void tni_mm_place(const tni_mm_product *product, const tn_run *run, int64_t index,
                  tni_mm_matrix *out);

/* Calls task(work, i) for all i below `count`: on the host's threads, or one after the other if there
 * is nothing to share. */
static inline void tni_mm_each(const tn_host *host, int32_t threads, int64_t count, tn_task *task,
                               const void *work)
{
    void *user = (void *)(uintptr_t)work;
    if (threads > 1 && count > 1)
        host->parallel_for(host->self, count, task, user);
    else
        for (int64_t i = 0; i < count; i++)
            task(user, i);
}

#endif
