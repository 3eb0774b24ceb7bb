/* What kernels are given, the same for the host that fills it in and for the device that reads it: this text
 * is compiled on both. Strides are in elements. */
#ifndef CUDA_KERNELS_ARGS_H
#define CUDA_KERNELS_ARGS_H

enum { CUDA_ARGS_RANK = 8, CUDA_ARGS_BATCH = CUDA_ARGS_RANK - 2, CUDA_ARGS_OPERANDS = 4 };

/* Elements one by one; the last dimension is the fastest. */
typedef struct cuda_each_args {
    void *data[CUDA_ARGS_OPERANDS];
    long long elements;
    long long size[CUDA_ARGS_RANK];
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_RANK];
    double value;
    int rank;
    int reserved;
} cuda_each_args;

/* Rows: `rows` of them, each of `size` elements; the dimensions are those before a row's own. */
typedef struct cuda_rows_args {
    void *data[CUDA_ARGS_OPERANDS];
    long long rows;
    long long size;
    long long outer[CUDA_ARGS_RANK];
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_RANK];
    long long along[CUDA_ARGS_OPERANDS]; /* between neighbours of a row */
    long long whole;                     /* rotary: the last dimension, of which `size` is turned */
    double epsilon;
    int rank;
    int reserved;
} cuda_rows_args;

/* Reductions: of each of `outputs` elements, `size` are taken, by dimensions of their own. Parts are of
 * `part` elements each; what becomes of one is at `partial`. */
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

/* Matrix products: out = f(alpha A B + beta out + bias), m by n, of k products each. Operands are A, B, out, bias,
 * the last of which may be NULL. Out is made in tiles, which are numbered across a matrix first, then down, then
 * from matrix to matrix. */
typedef struct cuda_matmul_args {
    void *data[CUDA_ARGS_OPERANDS];
    double alpha;
    double beta;
    long long m;
    long long n;
    long long k;
    long long down[CUDA_ARGS_OPERANDS];   /* from row to row       */
    long long across[CUDA_ARGS_OPERANDS]; /* from column to column */
    long long outer[CUDA_ARGS_BATCH];     /* of the batch          */
    long long stride[CUDA_ARGS_OPERANDS][CUDA_ARGS_BATCH];
    unsigned tiles;
    unsigned tiles_down;
    unsigned tiles_across;
    int rank;       /* of the batch                                                   */
    int a_by_k;     /* neighbours of A along k lie nearer than those of other rows    */
    int b_by_k;     /* the same of B, and other columns                               */
    int by_columns; /* neighbours of out down a column lie nearer than those of a row */
    int lanes;      /* of what follows a library's product: threads along a row       */
    int whole;      /* the same: neighbours along it are read and written at once     */
} cuda_matmul_args;

/* A table of i32. */
typedef struct cuda_table {
    const int *first; /* 0: there is none */
    long long stride;
} cuda_table;

/* Attention, as tenon/module/op.h has it. A row is a query of a head; those of one group of keys are numbered by
 * their queries first, then by their heads, in blocks of as many as a kernel takes at once. */
typedef struct cuda_attention_args {
    const void *q, *k, *v;
    void *out;
    void *lse; /* 0: not wanted */
    const void *mask;
    const void *sinks;
    void *
        partial; /* of each row and part of the keys: sums of values; behind them all, greatest and sum of weights */
    cuda_table starts_q, starts_k, lengths, pages;
    long long pages_along;
    long long q_stride[4], k_stride[4], v_stride[4], out_stride[4], lse_stride[4], mask_stride[4];
    long long sinks_stride;
    long long all_queries, all_keys; /* of what is packed */
    long long left, right, shift;
    int batch, heads, groups, queries, keys, size, value_size;
    int ratio;       /* heads of a group             */
    int page, pool;  /* keys of a page, and pages    */
    int blocks;      /* of rows, in one group        */
    int parts, part; /* of keys, and how many one has */
    unsigned long long seed, offset;
    double scale, softcap;
    double kept;        /* 1 less dropout */
    unsigned threshold; /* a weight is kept whose word, without its last 8 bits, is at least this */
    int bottom;         /* places are counted from the bottom right corner */
    int mask_kind;      /* 0 none, 1 of bool, 2 of f32, 3 of the operands' dtype */
    int sinks_kind;     /* 0 none, 2 and 3 as above */
    int whole_q, whole_k, whole_v, whole_out; /* rows of it are read or written 16 bytes at once */
} cuda_attention_args;

/* Its gradients. `out` and `lse` of the first are read; it has no sinks, nothing packed, no lengths and no pages. */
typedef struct cuda_gradient_args {
    cuda_attention_args of;
    const void *dout;
    void *dq, *dk, *dv;
    void *
        delta; /* of each row, in the order of lse where that is dense: the sum of out times its gradient */
    long long dout_stride[4], dq_stride[4], dk_stride[4], dv_stride[4];
    int key_blocks; /* of a group */
    int whole_dout;
} cuda_gradient_args;

/* Random numbers: `elements` of them, from block `block` on. */
typedef struct cuda_random_args {
    void *out;
    long long elements;
    unsigned long long seed;
    unsigned long long subsequence;
    unsigned long long block;
} cuda_random_args;

/* What dropout keeps of `elements` weights, numbered from 0: those whose random number, of 24 bits, is at least
 * `least`. `one` is what is written for them. */
typedef struct cuda_dropout_args {
    void *out;
    long long elements;
    unsigned long long seed;
    unsigned long long block;
    unsigned least;
    unsigned one;
} cuda_dropout_args;

#endif
