/* The kernels' arguments, for the host that fills them in and the device that reads them: this text is
 * compiled on both. Strides are in elements. */
#ifndef CUDA_KERNELS_ARGS_H
#define CUDA_KERNELS_ARGS_H

enum { CUDA_ARGS_RANK = 8, CUDA_ARGS_BATCH = CUDA_ARGS_RANK - 2, CUDA_ARGS_OPERANDS = 4 };

/* Elementwise ops; the last dimension is the fastest. */
typedef struct cuda_each_args {
    void *data[CUDA_ARGS_OPERANDS];
    long long elements;
    long long size[CUDA_ARGS_RANK];
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_RANK];
    double value;
    int rank;
    int reserved;
} cuda_each_args;

/* Row-wise ops: `rows` rows of `size` elements; `outer` has the dimensions before a row's own. */
typedef struct cuda_rows_args {
    void *data[CUDA_ARGS_OPERANDS];
    long long rows;
    long long size;
    long long outer[CUDA_ARGS_RANK];
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_RANK];
    long long along[CUDA_ARGS_OPERANDS]; /* stride between neighbours in a row */
    long long whole;                     /* rotary: the last dimension; `size` of it is rotated */
    double epsilon;
    int rank;
    int reserved;
} cuda_rows_args;

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

/* Matrix products: out = f(alpha A B + beta out + bias), m by n, with k products per sum. The operands are A, B,
 * out and bias, which may be NULL. Out is computed in tiles, numbered across a matrix first, then down, then from
 * matrix to matrix. */
typedef struct cuda_matmul_args {
    void *data[CUDA_ARGS_OPERANDS];
    double alpha;
    double beta;
    long long m;
    long long n;
    long long k;
    long long down[CUDA_ARGS_OPERANDS];   /* stride between rows */
    long long across[CUDA_ARGS_OPERANDS]; /* stride between columns */
    long long outer[CUDA_ARGS_BATCH];     /* of the batch          */
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_BATCH];
    unsigned tiles;
    unsigned tiles_down;
    unsigned tiles_across;
    int rank;       /* of the batch                                                   */
    int a_by_k;     /* A's stride along k is smaller than along rows */
    int b_by_k;     /* the same for B and columns */
    int by_columns; /* out's stride down a column is smaller than along a row */
    int lanes;      /* epilogue after a library's product: threads along a row */
    int whole;      /* the same: neighbours along it are read and written at once */
} cuda_matmul_args;

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

/* Backward pass of attention. `of.out` and `of.lse` are inputs; there are no sinks, packed sequences, lengths or
 * pages. */
typedef struct cuda_gradient_args {
    cuda_attention_args of;
    const void *dout;
    void *dq, *dk, *dv;
    void *
        delta; /* for each row, in the order of a dense lse: the dot product of out and its gradient */
    long long dout_stride[4], dq_stride[4], dk_stride[4], dv_stride[4];
    int key_blocks; /* blocks of keys per group */
    int whole_dout;
} cuda_gradient_args;

/* Random numbers: `elements` of them, starting at Philox block `block`. */
typedef struct cuda_random_args {
    void *out;
    long long elements;
    unsigned long long seed;
    unsigned long long subsequence;
    unsigned long long block;
} cuda_random_args;

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
