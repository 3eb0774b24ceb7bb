/* Backward pass of attention on tensor cores of capability 8.0 and later: which variants of the kernel compute a problem, and
 * what it supports. */
#ifndef CUDA_BACKWARD_MMA_H
#define CUDA_BACKWARD_MMA_H

#include "../kernels/layout.h"
#include "backward_schedule.h"
#include "tenon/module/op/attention.h"

/* The kernels of a problem in their order: they compute dQ; dK and dV; dK alone; dV alone. */
typedef enum backward_part {
    BACKWARD_DQ,
    BACKWARD_DK_DV,
    BACKWARD_DK,
    BACKWARD_DV,
    BACKWARD_PARTS
} backward_part;

/* Returns whether a problem has the kernel. */
bool cuda_backward_has(const tn_op *op, backward_part part);

/* What a kernel is compiled for: see attention_backward_mma.cu. */
typedef struct backward_variant {
    backward_part part;
    int size, values, warps, width, held, resident;
} backward_variant;

void cuda_backward_variant_of(const tn_op *op, backward_part part, backward_variant *out);

/* The kernel of a problem; `options` must have CUDA_BACKWARD_OPTIONS bytes and live as long as `out`. */
enum { CUDA_BACKWARD_OPTIONS = 320 };
void cuda_backward_case(const tn_op *op, backward_part part, char *options, cuda_case *out);

/* Own rows of a block, its threads, and its bytes of shared memory. */
int cuda_backward_side(const backward_variant *variant);
unsigned cuda_backward_threads(const backward_variant *variant);
unsigned cuda_backward_shared(const backward_variant *variant);

typedef struct backward_shape {
    int64_t lots;        /* groups of all sequences */
    int64_t row_blocks;  /* per lot: blocks of queries of all heads that share its keys */
    int64_t key_blocks;  /* per lot */
    int64_t padded_rows; /* rows per lot, with those that fill the last block */
} backward_shape;

void cuda_backward_shape_of(const tn_op *op, backward_shape *out);

tn_status cuda_backward_admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why);
double cuda_backward_cost(const tn_kernel_row *row, const tn_query *query);
uint64_t cuda_backward_workspace(const tn_kernel_row *row, const tn_query *query);

#endif
