/* Epilogue after a library's product: bias and activation, by a kernel of our own, from sums of f32; or, for
 * complex numbers, which have no activation, from sums of out's dtype. */
#ifndef CUDA_MATMUL_FINISH_H
#define CUDA_MATMUL_FINISH_H

#include "../kernels/layout.h"
#include "matmul_args.h"

/* Everything except the addresses, which differ in each run. */
typedef struct cuda_finish {
    cuda_kernel *kernel;
    cuda_matmul_args args;
} cuda_finish;

/* Describes the kernel for an op; `options` must have CUDA_FINISH_OPTIONS bytes, and live as long as `out`. */
enum { CUDA_FINISH_OPTIONS = 112 };
void cuda_finish_case(const tn_op *op, char *options, cuda_case *out);

/* Plans the epilogue of the run's op; `sums` is the layout of the sums, with out's shape. Fails with
 * TN_UNSUPPORTED like cuda_kernel_beside. */
tn_status cuda_finish_plan(const tn_run *run, const tn_layout *sums, cuda_finish *out,
                           tn_error *err);

/* Queues the epilogue. `sums` may be out itself. */
tn_status cuda_finish_run(const tn_run *run, const cuda_finish *finish, void *sums, tn_error *err);

/* Returns the bytes of one sum of the op. */
int64_t cuda_finish_sum_bytes(const tn_op *op);

/* Returns the number of tiles of the kernel; must be at most 2^31 - 1. */
int64_t cuda_finish_tiles(const tn_op *op);

#endif
