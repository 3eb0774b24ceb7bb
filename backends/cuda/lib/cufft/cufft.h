/* cuFFT, NVIDIA's Fourier transforms: our own declarations of the parts that are used.
 *
 * A handle is one plan on one device. It stores the stream and the work area of the next transform, so only one thread at
 * a time may use it: from setting these until the transform is queued.
 *
 * Thread-safety: the library's functions are safe with different handles. */
#ifndef CUDA_CUFFT_H
#define CUDA_CUFFT_H

#include "../../platform/cuda.h"
#include "cufft_list.h"
#include "tenon/module/kernel.h"
#include "tenon/module/library.h"

typedef int fft_status, fft_property, fft_handle, fft_type;
typedef cu_stream fft_stream;

enum {
#define FFT_NUMBER_(ours, theirs, number) ours = number,
    FFT_NUMBER_LIST(FFT_NUMBER_)
#undef FFT_NUMBER_
};

/* The object that the library's `open` returns. */
typedef struct cuda_cufft {
#define FFT_CALL_(field, name, result, parameters) result(*field) parameters;
    FFT_CALL_LIST(FFT_CALL_)
#undef FFT_CALL_
} cuda_cufft;

extern const tn_library_row cuda_cufft_library_row;
extern const tn_kernel_row cuda_cufft_row;

/* Converts a result of the library to a status. */
tn_status cuda_cufft_check(fft_status code, const char *call, tn_error *err);

#endif
