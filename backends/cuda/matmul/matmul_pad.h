/* Copies of matrices between memory that is aligned to 16 bytes and memory that is not, before and after a
 * library's product. */
#ifndef CUDA_MATMUL_PAD_H
#define CUDA_MATMUL_PAD_H

#include "../kernels/layout.h"
#include "matmul_pad_args.h"

/* The copies' kernel: one for all dtypes, sizes and strides. */
extern const cuda_case cuda_pad_case;

/* Fails with TN_UNSUPPORTED like cuda_kernel_beside. */
tn_status cuda_pad_plan(const tn_run *run, cuda_kernel **out, tn_error *err);

/* Describes a copy between matrices of one dtype, of 2 or 4 bytes, in batches of the same shape. Their elements are
 * contiguous along the dimension `along`, `rank` - 1 or `rank` - 2. In these two dimensions `to` may be smaller, so
 * that a part is copied, or larger, and is then filled up with 0. If `to_padding`, the elements between lines of `to`
 * are also filled up. A stride of 0 in the batch of `to` means one matrix. At most 1 GiB is written. */
void cuda_pad_describe(const tn_layout *from, const tn_layout *to, int32_t along, bool to_padding,
                       cuda_pad_args *out);

/* Queues the copy; there may be nothing to copy. */
tn_status cuda_pad_run(const tn_run *run, cuda_kernel *kernel, const cuda_pad_args *described,
                       const void *from, void *to, tn_error *err);

#endif
