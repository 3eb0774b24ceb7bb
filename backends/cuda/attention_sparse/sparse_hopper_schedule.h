/* Attention of listed blocks on Hopper: how the loader splits the keys of a listed block into tiles, and where it tells the computing
 * groups of them. Compiled for the host, which tests it, and for the device. */
#ifndef CUDA_SPARSE_HOPPER_SCHEDULE_H
#define CUDA_SPARSE_HOPPER_SCHEDULE_H

#ifdef __CUDACC__
#define SPARSE_HOPPER_CALL static __device__ __forceinline__ constexpr
#else
#define SPARSE_HOPPER_CALL static inline
#endif

/* The loader writes what groups need to know about a tile to one of this many slots, in turn. It is at most as many tiles ahead of
 * a group as there are buffers, so with more slots than buffers, no slot is overwritten before all groups have read it. */
enum { SPARSE_HOPPER_SLOTS = 4, SPARSE_HOPPER_STAGES_MOST = SPARSE_HOPPER_SLOTS - 1 };

/* Stands for the number of unused rows of a tile after the last one. */
enum { SPARSE_HOPPER_NO_TILE = -1 };

SPARSE_HOPPER_CALL int sparse_hopper_next_slot(int slot)
{
    return (slot + 1) % SPARSE_HOPPER_SLOTS;
}

/* A tile of `width` rows begins with the next of `left` keys, at least 1. Returns how many of its last rows are no valid keys of the
 * block. */
SPARSE_HOPPER_CALL int sparse_hopper_unused(int left, int width)
{
    return left < width ? width - left : 0;
}

/* Bytes behind the barriers: the slots, and one for the first tile of a tile of rows. */
enum { SPARSE_HOPPER_LIST_BYTES = 4 * (SPARSE_HOPPER_SLOTS + 1) };

/* Bytes of shared memory that one block may have, those of a multiprocessor, and what it needs for each block besides the block's own. */
enum {
    SPARSE_HOPPER_BLOCK_BYTES = 227 << 10,
    SPARSE_HOPPER_PROCESSOR_BYTES = 228 << 10,
    SPARSE_HOPPER_RESERVED_BYTES = 1 << 10
};

/* If two groups need more registers than this for scores, weights and sums, the loader has so few that some are spilled. */
enum { SPARSE_HOPPER_HELD_MANY = 200 };

/* Blocks of one group that a multiprocessor has at a time: 2 if their buffers and barriers, of `bytes`, have room. */
SPARSE_HOPPER_CALL int sparse_hopper_resident(int bytes)
{
    return 2 * (bytes + SPARSE_HOPPER_LIST_BYTES + SPARSE_HOPPER_RESERVED_BYTES) <=
                   SPARSE_HOPPER_PROCESSOR_BYTES
               ? 2
               : 1;
}

#endif
