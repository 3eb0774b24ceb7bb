/* Copies of operands before and after Fourier transforms by a library, by a kernel of our own. */
#ifndef CUDA_FFT_COPY_H
#define CUDA_FFT_COPY_H

#include "../kernels/layout.h"
#include "fft_copy_args.h"

/* A copy of a plan; `kernel` is NULL if nothing is to be copied. */
typedef struct cuda_fft_copy {
    cuda_kernel *kernel;
    cuda_fft_copy_args args; /* without addresses */
} cuda_fft_copy;

/* Describes the kernel for elements of a dtype; `options` must have CUDA_FFT_COPY_OPTIONS bytes, and live as long as
 * `out`. */
enum { CUDA_FFT_COPY_OPTIONS = 64 };
void cuda_fft_copy_case(tn_dtype dtype, char *options, cuda_case *out);

/* Plans a copy between layouts of one dtype and shape, with `args`' scale, dims, conjugate and symmetric. Fails with
 * TN_UNSUPPORTED like cuda_kernel_beside. */
tn_status cuda_fft_copy_plan(const tn_run *run, const tn_layout *from, const tn_layout *to,
                             const cuda_fft_copy_args *args, cuda_fft_copy *out, tn_error *err);

/* Queues the copy. */
tn_status cuda_fft_copy_run(const tn_run *run, const cuda_fft_copy *copy, const void *from,
                            void *to, tn_error *err);

#endif
