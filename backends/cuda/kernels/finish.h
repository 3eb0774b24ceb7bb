/* What follows a library's product: bias and activation, by a kernel of our own, from sums of f32; or, of complex numbers,
 * which have no activation, from sums of out's dtype. */
#ifndef CUDA_KERNELS_FINISH_H
#define CUDA_KERNELS_FINISH_H

#include "layout.h"

/* All but the addresses, which each run has. */
typedef struct cuda_finish {
    cuda_kernel *kernel;
    cuda_matmul_args args;
} cuda_finish;

/* The kernel of an op; `options` has room for CUDA_FINISH_OPTIONS bytes, and lives as long as `out`. */
enum { CUDA_FINISH_OPTIONS = 112 };
void cuda_finish_case(const tn_op *op, char *options, cuda_case *out);

/* Of the run's op; its sums lie as `sums` says, of out's shape. TN_UNSUPPORTED as cuda_kernel_beside has it. */
tn_status cuda_finish_plan(const tn_run *run, const tn_layout *sums, cuda_finish *out,
                           tn_error *err);

/* Queues it. `sums` may be out itself. */
tn_status cuda_finish_run(const tn_run *run, const cuda_finish *finish, void *sums, tn_error *err);

/* Bytes of one sum of the op. */
int64_t cuda_finish_sum_bytes(const tn_op *op);

/* Parts that its blocks take, which are to be at most 2^31 - 1. */
int64_t cuda_finish_tiles(const tn_op *op);

#endif
