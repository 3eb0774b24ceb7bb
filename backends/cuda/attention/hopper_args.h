/* The arguments of attention's kernels for Hopper, for the host and the device. They follow those of attention_args.h. */
#ifndef CUDA_HOPPER_ARGS_H
#define CUDA_HOPPER_ARGS_H

#ifdef __cplusplus
#define HOPPER_ALIGNED alignas(64)
#else
#define HOPPER_ALIGNED _Alignas(64)
#endif

/* A tensor map of the driver (CUtensorMap). */
typedef struct hopper_map {
    HOPPER_ALIGNED unsigned long long words[16];
} hopper_map;

/* The kernel for dense attention loads K and V into this many buffers each. */
enum { HOPPER_STAGES = 2 };

typedef struct hopper_args {
    hopper_map q, k, v;
    cuda_attention_args at; /* strides of the mask are in bytes */
    hopper_counts counts;
    float scale; /* of scores, times log2(e); with a softcap, divided by it instead */
    float plain; /* with a softcap: of scores, times log2(e) */
    float cap;   /* the softcap, times log2(e) */
} hopper_args;

#endif
