/* Attention by kernels of our own: how a problem is cut, what they take, what a run costs. */
#ifndef CUDA_KERNELS_ATTENTION_H
#define CUDA_KERNELS_ATTENTION_H

#include "layout.h"

typedef struct cuda_attention_shape {
    bool few;       /* attention_few computes it, else attention_many      */
    int64_t lots;   /* groups of all sequences                             */
    int64_t rows;   /* of one: queries of all heads that share its keys    */
    int64_t blocks; /* of rows, in one                                     */
    int64_t each;   /* rows of a block                                     */
    int64_t parts;  /* that keys are cut into; put together where several  */
    int64_t part;   /* keys of one                                         */
} cuda_attention_shape;

/* A function of the row and the problem alone. */
void cuda_attention_shape_of(const tn_kernel_row *row, const tn_op *op, cuda_attention_shape *out);

tn_status cuda_attention_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
double cuda_attention_cost(const tn_kernel_row *row, const tn_query *query);

#endif
