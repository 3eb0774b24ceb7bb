/* A transform in the form of cuFFT: lengths, and for each operand one stride between elements, one between transforms,
 * and the sizes of the arrays that contain the transformed dimensions. Other operands are staged: copied to or from dense
 * workspace. */
#ifndef CUDA_CUFFT_SHAPE_H
#define CUDA_CUFFT_SHAPE_H

#include "../../fft/fft_copy.h"
#include "tenon/module/op/fft.h"

/* An operand as the library sees it. */
typedef struct cufft_operand {
    tn_layout layout; /* dense if staged */
    bool staged;
    uint64_t at; /* if staged: where it begins in the workspace */
    long long embed[TN_FFT_DIMS_MAX];
    long long stride, distance;
} cufft_operand;

typedef struct cufft_shape {
    cufft_operand
        side[TN_FFT_OPERANDS]; /* both staged operands of a complex transform are the same memory */
    double bytes;              /* of staged operands, which no size of an op overflows */
    cuda_fft_copy_args before,
        after; /* scale, dims, conjugate, symmetric of the copies around the transform */
    bool copies_before, copies_after; /* the copy after it may be from OUT to OUT, for the scale */
    int32_t direction;                /* FFT_FORWARD or FFT_INVERSE */
} cufft_shape;

/* Depends only on what the key of plans has. */
void cufft_shape_of(const tn_op *op, cufft_shape *out);

/* Plans the copies of a shape. */
tn_status cufft_copies_plan(const tn_run *run, const cufft_shape *shape, cuda_fft_copy *out_before,
                            cuda_fft_copy *out_after, tn_error *err);

/* Returns the memory of an operand for the library. */
void *cufft_memory(const tn_run *run, const cufft_shape *shape, int32_t operand);

#endif
