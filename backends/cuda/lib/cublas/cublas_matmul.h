/* Products by cuBLASLt: a plan keeps its descriptors and one of the algorithms that the heuristics return. */
#ifndef CUDA_CUBLAS_MATMUL_H
#define CUDA_CUBLAS_MATMUL_H

#include "tenon/module/kernel.h"

#include <stdbool.h>

/* A row uses the first, second or third answer of the heuristics, because tuning may find that a later one is
 * faster. If there are fewer answers, it uses the last one. */
enum { LT_WAYS = 3 };
typedef struct lt_row {
    tn_kernel_row row;
    int32_t answer; /* from 0 */
    bool pads;      /* misaligned operands are copied (cublas_pad.h) */
} lt_row;

/* Returns the workspace that a plan may request: as much as kernels for this size can use. */
uint64_t lt_workspace(const tn_kernel_row *row, const tn_query *query);

/* A row's `cost`, for products that another kernel finishes (cublas_after.h) or whose 16-bit operands are misaligned;
 * otherwise returns 0. */
double lt_cost(const tn_kernel_row *row, const tn_query *query);

tn_status lt_plan(const tn_run *run, void **out, uint64_t *out_bytes, tn_error *err);
void lt_plan_release(const tn_run *run, void *any);
tn_status lt_run(const tn_run *run, tn_error *err);

/*  Numeric variants. */
#define LT_ROWS_LIST(X) \
    X(wide) X(tf32) X(half) X(half_reduced) X(half_whole) X(f16_sums) X(int8) X(f8)

#define LT_ROWS_(kind) extern const lt_row cuda_lt_##kind##_rows[LT_WAYS];
LT_ROWS_LIST(LT_ROWS_)
#undef LT_ROWS_

/* The rows that copy misaligned operands. */
#define LT_PADDED_LIST(X)  \
    X(cuda_lt_half_padded) \
    X(cuda_lt_half_reduced_padded) X(cuda_lt_half_whole_padded) X(cuda_lt_f16_sums_padded)

#define LT_PADDED_(name) extern const lt_row name;
LT_PADDED_LIST(LT_PADDED_)
#undef LT_PADDED_

#endif
