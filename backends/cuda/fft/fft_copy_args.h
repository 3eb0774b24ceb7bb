/* The arguments of fft_copy.cu, for the host and the device. */
#ifndef CUDA_FFT_COPY_ARGS_H
#define CUDA_FFT_COPY_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "../kernels/args.h"
#endif

/* to = scale * from, for real or complex elements. `from` may be `to`, with the same strides and without `symmetric`. */
typedef struct cuda_fft_copy_args {
    const void *from;
    void *to;
    long long elements;
    long long size[CUDA_ARGS_RANK];
    long long stride[2][CUDA_ARGS_RANK]; /* of from and to */
    double scale;
    int rank;
    int dims;      /* of a transform: the last ones */
    int conjugate; /* writes the conjugate */
    int symmetric; /* half spectra: bit 0 for index 0 of the last dimension, bit 1 for its last index: writes the
                    * mean of an element and the conjugate of its mirror image in the other dimensions of the transform */
} cuda_fft_copy_args;

#endif
