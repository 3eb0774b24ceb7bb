/* The arguments of attention's kernels for Hopper, for the host and the device. They follow those of attention_args.h. */
#ifndef CUDA_HOPPER_ARGS_H
#define CUDA_HOPPER_ARGS_H

#ifdef __CUDACC__
#define HOPPER_ALIGNED alignas(64)
#else
#define HOPPER_ALIGNED _Alignas(64)
#endif

/* A tensor map of the driver (CUtensorMap). */
typedef struct hopper_map {
    HOPPER_ALIGNED unsigned long long words[16];
} hopper_map;

typedef struct hopper_args {
    hopper_map q, k, v;
    void *out;
    float *lse; /* NULL: not requested */
    const void *mask, *sinks;
    cuda_table starts_q, starts_k, lengths;
    long long out_stride[3], lse_stride[3]; /* of batch, head, query */
    long long mask_stride[4], sinks_stride;
    long long all_queries, all_keys; /* of packed sequences */
    hopper_counts counts;
    int heads, ratio; /* heads, and heads per group */
    int value_size;
    int sinks_kind; /* as in cuda_attention_args */
    int whole;      /* rows of OUT are written 16 bytes at once */
    float scale;    /* of scores, times log2(e); with a softcap, divided by it instead */
    float plain;    /* with a softcap: of scores, times log2(e) */
    float cap;      /* the softcap, times log2(e) */
} hopper_args;

#endif
