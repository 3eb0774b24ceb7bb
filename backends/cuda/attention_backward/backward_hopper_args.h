/* The arguments of the kernels for gradients of attention on Hopper, for the host and the device. They follow those of
 * attention_backward_args.h and hopper_args.h. */
#ifndef CUDA_BACKWARD_HOPPER_ARGS_H
#define CUDA_BACKWARD_HOPPER_ARGS_H

typedef struct backward_hopper_args {
    hopper_map q, k, v, dout; /* tiles of 64 rows */
    cuda_gradient_args at;    /* without what describes its own workspace */
    hopper_counts counts;     /* of these, what concerns positions */
    float *lse, *delta;       /* of `padded` rows of each head of each sequence */
    unsigned short *slopes;   /* of the section: see slope_tile_number */
    float *partial;           /* sums of dQ of the section's heads, if it has not all keys */
    long long padded;         /* 64 * tiles */
    int tiles;                /* tiles of queries */
    int lot;                  /* the section's first group of keys, counted over all sequences */
    int first_block, blocks;  /* of keys, per group */
    int row_blocks;           /* of queries, per head */
    int resumes, continues; /* sections before it, or after it, have other keys of the same heads */
} backward_hopper_args;

#endif
