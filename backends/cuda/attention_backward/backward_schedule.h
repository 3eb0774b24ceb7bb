/* Backward pass of attention on tensor cores: which rows of queries can see a block of keys, and where a block has its operands
 * in shared memory. Compiled for the host, which tests it, and for the device. */
#ifndef CUDA_BACKWARD_SCHEDULE_H
#define CUDA_BACKWARD_SCHEDULE_H

#ifdef __CUDACC__
#define BACKWARD_CALL static __device__ __forceinline__
#else
#define BACKWARD_CALL static inline
#endif

enum {
    BACKWARD_STAGES = 2, /* tiles of the other side that a block has in shared memory */
    BACKWARD_STATE = 8   /* bytes of the state of a row of queries: two floats */
};

/* A bound by position that is greater has no effect. Sums of a few such numbers do not overflow. */
#define BACKWARD_FAR ((long long)1 << 40)

typedef struct backward_range {
    int begin, end;
} backward_range;

/* Bounds by position, as in cuda_attention_args, and the counts of the sequence's queries and keys. */
typedef struct backward_bounds {
    long long left, right, shift;
    int queries, keys, bottom;
} backward_bounds;

BACKWARD_CALL long long backward_clamp(long long x, long long most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Returns a range of queries that contains all that see, by position, one of `count` keys from `first` on. */
BACKWARD_CALL backward_range backward_queries(const backward_bounds *of, int first, int count)
{
    const long long place = of->shift + (of->bottom ? of->keys - of->queries : 0);
    const int last = first + count < of->keys ? first + count : of->keys;
    const long long low = of->right < 0 || of->right > BACKWARD_FAR ? 0 : first - of->right - place;
    const long long high =
        of->left < 0 || of->left > BACKWARD_FAR ? of->queries : last + of->left - place;
    backward_range to;
    to.begin = (int)backward_clamp(low, of->queries);
    to.end = (int)backward_clamp(high, of->queries);
    to.end = first >= of->keys || to.end < to.begin ? to.begin : to.end;
    return to;
}

/* Returns a block's bytes of shared memory: its `side` own rows of both operands, then the stages, then the states of its own
 * rows. A stage has `width` rows of both operands and their states. */
BACKWARD_CALL int backward_shared_bytes(int side, int width, int head_pitch, int value_pitch)
{
    return (side + BACKWARD_STAGES * width) * (head_pitch + value_pitch + BACKWARD_STATE);
}

#endif
