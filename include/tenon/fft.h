/* Discrete Fourier transforms of 1 to 3 dimensions, of any length.
 *
 * The dtypes of in and out say which kind of transform it is: complex (c64 to c64, c128 to c128),
 * real to complex (f32 to c64, f64 to c128) or complex to real (c64 to f32, c128 to f64).
 * module/op/fft.h states what is computed.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_FFT_H
#define TENON_FFT_H

#include "explain.h"
#include "module/op/fft.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* The shapes of in and out are equal, except that the last transformed dimension of a complex operand
 * beside a real one of n elements has n / 2 + 1. Transformed dimensions have 1 to 2^31 - 1 elements;
 * without any other element (an empty batch), nothing is computed. out may be in for complex
 * transforms: same memory, same layout. More than 3 dimensions are transformed by several calls.
 * Required operands: in; writes out. */
typedef struct tn_fft_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    const int32_t *axes; /* dimensions to transform, the halved one last; NULL: the last one */
    int32_t axes_count;  /* 1 to 3; 0 if axes is NULL */
    int32_t direction;   /* TN_FFT_FORWARD or TN_FFT_INVERSE */
    int32_t norm;        /* TN_FFT_BACKWARD, TN_FFT_ORTHO, TN_FFT_BY_FORWARD: what is scaled */
    int32_t reserved;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_fft_args;
TN_ENDS_WITH(tn_fft_args, workspace_bytes);

TN_API tn_status tn_fft(const tn_context *context, const tn_fft_args *args, tn_error *err);

/* _explain reports which kernel the call would use, and why; _prepare makes its plan ahead of time.
 * See explain.h and plan.h. */
TN_API tn_status tn_fft_explain(const tn_context *context, const tn_fft_args *args,
                                tn_decision **out, tn_error *err);
TN_API tn_status tn_fft_prepare(const tn_context *context, const tn_fft_args *args, tn_error *err);

TN_END_DECLS

#endif
