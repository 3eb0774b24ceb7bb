/* The arguments of the kernel for listed blocks on Hopper, for the host and the device. They follow those of attention_sparse_args.h and
 * hopper_args.h. */
#ifndef CUDA_SPARSE_HOPPER_ARGS_H
#define CUDA_SPARSE_HOPPER_ARGS_H

/* In `of.counts`, `blocks` is the number of tiles of rows of a head; tables, positions and masks of `of` are not used. */
typedef struct sparse_hopper_args {
    hopper_args of;
    cuda_sparse_args list;
} sparse_hopper_args;

#endif
