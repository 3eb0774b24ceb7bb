/* The arguments of attention_backward.cu, for the host and the device. */
#ifndef CUDA_ATTENTION_BACKWARD_ARGS_H
#define CUDA_ATTENTION_BACKWARD_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "../attention/attention_args.h"
#endif

/* Backward pass of attention. `of.out` and `of.lse` are inputs; there are no sinks, packed sequences, lengths or
 * pages. */
typedef struct cuda_gradient_args {
    cuda_attention_args of;
    const void *dout;
    void *dq, *dk, *dv;
    /* The workspace. In attention_backward.cu: for each row, the dot product of out and dout, in the order of a dense lse. In
     * attention_backward_mma.cu: for each group of each sequence, `padded_rows` pairs of lse times log2(e) and that product. */
    void *delta;
    long long dout_stride[4], dq_stride[4], dk_stride[4], dv_stride[4];
    int key_blocks;  /* blocks of keys per group */
    int padded_rows; /* rows per group, rounded up to whole blocks; for attention_backward_mma.cu */
    float log2_scale; /* the scale times log2(e) */
    int whole_dout, whole_dq, whole_dk,
        whole_dv; /* its rows are read or written 16 bytes at once */
} cuda_gradient_args;

#endif
