/* What a matmul is to the kernels here: a number of products A B of matrices with any strides. */
#ifndef TENON_BACKENDS_CPU_MATMUL_PRODUCT_H
#define TENON_BACKENDS_CPU_MATMUL_PRODUCT_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* One operand's matrices. Absent, as a bias may be: dtype 0. */
typedef struct tni_mm_side {
    int32_t operand; /* TN_MATMUL_...; by its layout's strides the batch is walked */
    tn_dtype dtype;
    int64_t size;        /* bytes of an element                                              */
    int64_t row, column; /* strides in elements, of any sign; 0 of a bias that is broadcast, and
                            of what has one row or one column                                */
} tni_mm_side;

/* Matrices that follow each other and share B are folded into one. A product is turned, which is
 * out^T = B^T A^T, when out lies by columns: then `a` is the op's B and m its n. */
typedef struct tni_mm_product {
    const tn_op *op;
    int64_t m, n, k;
    int64_t matrices;   /* after folding */
    int32_t batch_rank; /* after folding */
    int32_t activation; /* TN_ACT_...    */
    bool turned;
    tni_mm_side a, b, out, bias;
} tni_mm_product;

/* The first elements of one matrix of each operand; NULL for what is absent or empty. */
typedef struct tni_mm_matrix {
    const char *a, *b;
    char *out;
    const char *bias;
} tni_mm_matrix;

/* Describes an op; pure. It stays valid as long as the op does. */
void tni_mm_describe(const tn_op *op, tni_mm_product *out);

/* Exchanges the roles of A and B once more. */
void tni_mm_turn(tni_mm_product *product);

/* Whether sums can be kept where out's elements are: they are of dtype `acc`, and together in rows. */
static inline bool tni_mm_out_is(const tni_mm_product *product, tn_dtype acc)
{
    return product->out.dtype == acc && (product->out.column == 1 || product->n == 1);
}

/* The matrix of that number, of the data that a run was given. */
void tni_mm_place(const tni_mm_product *product, const tn_run *run, int64_t index,
                  tni_mm_matrix *out);

#endif
