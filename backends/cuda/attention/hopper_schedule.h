/* The tiles of attention on Hopper: which rows a block computes in which order, and which keys they see. Compiled for the
 * host, which tests it, and for the device. */
#ifndef CUDA_HOPPER_SCHEDULE_H
#define CUDA_HOPPER_SCHEDULE_H

#ifdef __CUDACC__
#define HOPPER_CALL static __device__ __forceinline__
#else
#define HOPPER_CALL static inline
#endif

/* Means no bound. Bounds are clamped to it, so that a position plus a shift plus a bound fits 32 bits. */
enum { HOPPER_FAR = 1 << 29 };

/* There are `all_heads` heads, of all sequences together, of `blocks` blocks of rows each. Key j is seen by row i if, with
 * d = i + shift (+ keys - queries with `bottom`), d - left <= j <= d + right. */
typedef struct hopper_counts {
    int all_heads, blocks;
    int section; /* heads whose keys are in use at the same time */
    int sorted;  /* blocks differ in the number of their keys: tiles are ordered by it */
    int queries, keys;
    int left, right, shift, bottom;
} hopper_counts;

/* A block of rows of one of `all_heads`. */
typedef struct hopper_tile {
    int head, block;
} hopper_tile;

/* The tile with number `index`, of all_heads * blocks. Sorted tiles of a section go from the longest to the shortest and, in
 * every other section, back; the last section ends with the shortest. So neighbours are of similar length. */
HOPPER_CALL hopper_tile hopper_tile_at(const hopper_counts *counts, int index)
{
    hopper_tile tile = {index / counts->blocks, index % counts->blocks};
    if (!counts->sorted)
        return tile;
    const int each = counts->section * counts->blocks, section = index / each,
              first = section * counts->section;
    const int sections = (counts->all_heads + counts->section - 1) / counts->section;
    const int heads =
        counts->all_heads - first < counts->section ? counts->all_heads - first : counts->section;
    index -= first * counts->blocks;
    tile.head = first + index % heads;
    tile.block = (sections - section) % 2 ? counts->blocks - 1 - index / heads : index / heads;
    return tile;
}

/* The number of the tile that one of `workers` computes in a turn; numbers from all_heads * blocks on stand for no tile.
 * Sorted tiles are dealt forth and back, which evens out their lengths. */
HOPPER_CALL int hopper_index(const hopper_counts *counts, int worker, int workers, int turn)
{
    return turn * workers + (counts->sorted && turn % 2 ? workers - 1 - worker : worker);
}

HOPPER_CALL int hopper_clamp(int x, int least, int most)
{
    return x < least ? least : x > most ? most : x;
}

/* Returns d of a row. */
HOPPER_CALL int hopper_diagonal(const hopper_counts *counts, int row)
{
    return row + counts->shift + (counts->bottom ? counts->keys - counts->queries : 0);
}

/* A row sees the keys from hopper_from to before hopper_end. */
HOPPER_CALL int hopper_from(const hopper_counts *counts, int row)
{
    return counts->left == HOPPER_FAR
               ? 0
               : hopper_clamp(hopper_diagonal(counts, row) - counts->left, 0, counts->keys);
}
HOPPER_CALL int hopper_end(const hopper_counts *counts, int row)
{
    return counts->right == HOPPER_FAR
               ? counts->keys
               : hopper_clamp(hopper_diagonal(counts, row) + counts->right + 1, 0, counts->keys);
}

/* The tiles of keys, of `width` each, of a block of rows: from `first` to before `end`, computed from the last to the
 * first. All rows of the block see all keys of the tiles from `full_from` to before `full_end`. */
typedef struct hopper_keys {
    int first, full_from, full_end, end;
} hopper_keys;

HOPPER_CALL hopper_keys hopper_keys_of(const hopper_counts *counts, int row, int rows, int width)
{
    hopper_keys seen = {0, 0, 0, 0};
    const int last = row + rows < counts->queries ? row + rows - 1 : counts->queries - 1;
    const int from = hopper_from(counts, row), end = hopper_end(counts, last);
    if (from >= end)
        return seen;
    seen.first = from / width;
    seen.end = (end + width - 1) / width;
    seen.full_from =
        hopper_clamp((hopper_from(counts, last) + width - 1) / width, seen.first, seen.end);
    seen.full_end = hopper_clamp(hopper_end(counts, row) / width, seen.full_from, seen.end);
    return seen;
}

#endif
