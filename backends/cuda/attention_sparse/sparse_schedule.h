/* Attention of listed blocks on tensor cores: how a block divides its shared memory. Compiled for the host, which tests it, and
 * for the device. */
#ifndef CUDA_SPARSE_SCHEDULE_H
#define CUDA_SPARSE_SCHEDULE_H

#ifdef __CUDACC__
#define SPARSE_CALL static __device__ __forceinline__ constexpr
#elif defined(__cplusplus)
#define SPARSE_CALL static inline constexpr
#else
#define SPARSE_CALL static inline
#endif

enum { SPARSE_ROWS = 16 }; /* rows of queries of one product */

/* Bytes of what finds keys: 7 words, 7 for each of 32 lanes, and for one tile more than there are stages the numbers of its keys and
 * their count. */
#define SPARSE_FINDER(stages, width) (4 * (7 + 7 * 32 + ((stages) + 1) * ((width) + 1)))

/* In shared memory: the rows of queries; `stages` tiles of `width` keys and values; what finds keys. `key_pitch` and `value_pitch` are
 * the bytes from a row to the next one. */
typedef struct sparse_places {
    int stages, stage; /* where they begin, bytes of one */
    int values;        /* where values begin in a stage */
    int finder;
    int end;
} sparse_places;

SPARSE_CALL sparse_places sparse_places_of(int rows, int width, int stages, int key_pitch,
                                           int value_pitch)
{
    sparse_places to = {0, 0, 0, 0, 0};
    to.stages = rows * key_pitch;
    to.values = width * key_pitch;
    to.stage = width * (key_pitch + value_pitch);
    to.finder = to.stages + stages * to.stage;
    to.end = to.finder + SPARSE_FINDER(stages, width);
    return to;
}

#endif
