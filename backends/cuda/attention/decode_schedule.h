/* Decoding: which keys a warp computes, and where its operands lie in shared memory. Compiled for the host, which tests
 * it, and for the device. */
#ifndef CUDA_DECODE_SCHEDULE_H
#define CUDA_DECODE_SCHEDULE_H

#ifdef __CUDACC__
#define DECODE_CALL static __device__ __forceinline__
#else
#define DECODE_CALL static inline
#endif

/* Each of a block's warps computes 16 keys at a time: those of the block are dealt out in turn. */
enum {
    DECODE_WARPS = 4,
    DECODE_KEYS = 16,
    DECODE_TURN = DECODE_WARPS * DECODE_KEYS,
    DECODE_ROWS = 16,  /* rows of queries of one product */
    DECODE_CHUNK = 8,  /* elements of 16 bytes */
    DECODE_BESIDE = 8, /* elements between the rows of sums that warps exchange */
    DECODE_ENDING = 32 /* bytes that describe how a row ends */
};

/* The first of a warp's keys in its turn n, of those from `begin` to before `end`; the number of its turns. */
DECODE_CALL int decode_key(int begin, int warp, int n)
{
    return begin + n * DECODE_TURN + warp * DECODE_KEYS;
}
DECODE_CALL int decode_turns(int begin, int end, int warp)
{
    const int left = end - decode_key(begin, warp, 0);
    return left > 0 ? (left + DECODE_TURN - 1) / DECODE_TURN : 0;
}

/* Bytes from a key to the next one: an odd number of chunks, so that eight keys lie in different banks. `size` is a
 * multiple of 16. */
DECODE_CALL int decode_pitch(int size)
{
    return (size / DECODE_CHUNK + 1) * 16;
}

/* What a lane copies of 16 keys: the number-th of its size / 16 chunks. */
DECODE_CALL int decode_copied_key(int size, int lane, int number)
{
    return (int)((unsigned)(number * 32 + lane) / (unsigned)(size / DECODE_CHUNK));
}
DECODE_CALL int decode_copied_chunk(int size, int lane, int number)
{
    return (int)((unsigned)(number * 32 + lane) % (unsigned)(size / DECODE_CHUNK));
}

/* Where a lane reads four matrices of 8 by 8: of keys for elements 16 step to 16 step + 15 of the head, the first two
 * matrices of keys 0 to 7; of values likewise, the first two of elements 16 step to 16 step + 7. */
DECODE_CALL int decode_keys_at(int pitch, int lane, int step)
{
    return (lane / 16 * 8 + lane % 8) * pitch + (2 * step + lane / 8 % 2) * 16;
}
DECODE_CALL int decode_values_at(int pitch, int lane, int step)
{
    return (lane / 8 % 2 * 8 + lane % 8) * pitch + (2 * step + lane / 16) * 16;
}

#endif
