/* The arguments of attention's kernels, for the host and the device. */
#ifndef CUDA_ATTENTION_ARGS_H
#define CUDA_ATTENTION_ARGS_H

/* A table of i32. */
typedef struct cuda_table {
    const int *first; /* NULL: none exists */
    long long stride;
} cuda_table;

/* Attention, as defined in tenon/module/op.h. A row is a query of a head. The rows of one group of keys are
 * numbered by queries first, then by heads, in blocks of the size that a kernel processes at once. */
typedef struct cuda_attention_args {
    const void *q, *k, *v;
    void *out;
    void *lse; /* NULL: not requested */
    const void *mask;
    const void *sinks;
    void *
        partial; /* for each row and part of the keys: sums of values; after all of these, maximum and sum of weights */
    cuda_table starts_q, starts_k, lengths, pages;
    long long pages_along;
    long long q_stride[4], k_stride[4], v_stride[4], out_stride[4], lse_stride[4], mask_stride[4];
    long long sinks_stride;
    long long all_queries, all_keys; /* total of packed sequences */
    long long left, right, shift;
    int batch, heads, groups, queries, keys, size, value_size;
    int ratio;       /* heads per group */
    int page, pool;  /* keys per page, number of pages */
    int blocks;      /* blocks of rows per group */
    int parts, part; /* parts of the keys, keys per part */
    unsigned long long seed, offset;
    double scale, softcap;
    double kept;        /* 1 - dropout */
    unsigned threshold; /* a weight is kept if its random word >> 8 is at least this */
    int bottom;         /* positions count from the bottom right corner */
    int mask_kind;      /* 0 none, 1 bool, 2 f32, 3 the operands' dtype */
    int sinks_kind;     /* 0 none, 2 and 3 as above */
    int whole_q, whole_k, whole_v, whole_out; /* its rows are read or written 16 bytes at once */
} cuda_attention_args;

/* Dropout mask of `elements` weights, numbered from 0: a weight is kept if its 24-bit random number is at least
 * `least`; then `one` is written, else 0. */
typedef struct cuda_dropout_args {
    void *out;
    long long elements;
    unsigned long long seed;
    unsigned long long block;
    unsigned least;
    unsigned one;
} cuda_dropout_args;

#endif
