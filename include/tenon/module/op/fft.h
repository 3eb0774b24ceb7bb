/* fft: discrete Fourier transforms of 1 to 3 dimensions, which are the last `dims` of both operands;
 * those before them are the batch.
 *
 *     OUT[k] = scale * sum over j of IN[j] * exp(s 2 pi i (j0 k0 / n0 + j1 k1 / n1 + ...))
 *
 * where n are the lengths and s is -1 for the direction forward, +1 for inverse. Operands have any
 * strides; both have the same rank and batch.
 *
 *     kind             IN           OUT          last transformed dimension of IN, of OUT
 *     complex          c64 or c128  the same     n, n
 *     real to complex  f32 or f64   c64 or c128  n, n / 2 + 1
 *     complex to real  c64 or c128  f32 or f64   n / 2 + 1, n
 *
 * The other transformed dimensions have their full length. Real to complex writes the half of the
 * spectrum with last index 0 to n / 2; the rest is its conjugate mirror image. Complex to real reads
 * that half: the other transformed dimensions are transformed as complex numbers; then, along the
 * last, element n - k is the conjugate of element k, and the imaginary parts of element 0 and, for
 * even n, of element n / 2 are ignored. IN need not be the transform of real numbers. IN is not
 * changed unless OUT is IN, which only `complex` permits.
 *
 * If IN has NaN or infinity, or sums overflow, the outputs of that transform are unspecified numbers,
 * infinity or NaN; the other transforms of the batch are not affected.
 *
 * Thread-safety: types without state. */
#ifndef TENON_MODULE_OP_FFT_H
#define TENON_MODULE_OP_FFT_H

#include "../op.h"

TN_BEGIN_DECLS

enum { TN_OP_FFT = 14 };

enum { TN_FFT_IN = 0, TN_FFT_OUT = 1, TN_FFT_OPERANDS };

/* Numbers are never reused. */
enum { TN_FFT_COMPLEX = 0, TN_FFT_REAL_TO_COMPLEX = 1, TN_FFT_COMPLEX_TO_REAL = 2 };
enum { TN_FFT_FORWARD = 0, TN_FFT_INVERSE = 1 };

/* Which direction is scaled by 1 / points: inverse, both by the square root of that, forward. */
enum { TN_FFT_BACKWARD = 0, TN_FFT_ORTHO = 1, TN_FFT_BY_FORWARD = 2 };

enum { TN_FFT_DIMS_MAX = 3 };

enum {
    TN_FFT_USES_STRIDES = 1 << 0,   /* an operand is not contiguous, not counting broadcasts */
    TN_FFT_USES_BROADCAST = 1 << 1, /* IN has stride 0                                       */
    TN_FFT_USES_REAL = 1 << 2,      /* the kind is not `complex`                             */
    TN_FFT_USES_IN_PLACE = 1 << 3,  /* OUT is IN: same memory, same layout                   */
    TN_FFT_USES_DIMS = 1 << 4       /* two or three dimensions are transformed               */
};

/* With this bit, one plan of a kernel serves any batch and any strides. Then its `plan` finds 0 as the
 * size of the dimensions before the last `dims`, and no valid strides. */
enum { TN_FFT_DIM_BATCH = 1 };

typedef struct tn_fft_op {
    int32_t kind;      /* TN_FFT_COMPLEX, ... */
    int32_t direction; /* TN_FFT_FORWARD or TN_FFT_INVERSE */
    int32_t norm;      /* TN_FFT_BACKWARD, TN_FFT_ORTHO, TN_FFT_BY_FORWARD: already in `scale` */
    int32_t dims;      /* 1 to 3 */
    int64_t length[TN_FFT_DIMS_MAX]; /* the first `dims`: n of each dimension, 1 to 2^31 - 1 */
    int64_t points;                  /* the product of the lengths */
    int64_t batch;                   /* number of transforms: product of the other dimensions */
    double scale;                    /* 1, 1 / points or 1 / sqrt(points) */
} tn_fft_op;
TN_PARAMS_FIT(tn_fft_op);

TN_END_DECLS

#endif
