/* The arguments of reduce.cu, for the host and the device. */
#ifndef CUDA_REDUCE_ARGS_H
#define CUDA_REDUCE_ARGS_H

#ifndef __cplusplus /* the device compiles C++, with that text before this one */
#include "../kernels/args.h"
#endif

/* Reductions: each of `outputs` outputs reduces `size` elements, which have their own dimensions
 * (`taken`). They are split into parts of `part` elements; the results of parts are at `partial`. */
typedef struct cuda_reduce_args {
    void *in;
    void *out;
    void *partial;
    long long outputs;
    long long size;
    long long parts;
    long long part;
    long long kept[CUDA_ARGS_RANK];
    long long kept_in[CUDA_ARGS_RANK];
    long long kept_out[CUDA_ARGS_RANK];
    long long taken[CUDA_ARGS_RANK];
    long long taken_in[CUDA_ARGS_RANK];
    int kept_rank;
    int taken_rank;
} cuda_reduce_args;

#endif
