/* The tiles of attention on Hopper: which rows a block computes in which order, and which keys they see. Compiled for the
 * host, which tests it, and for the device. */
#ifndef CUDA_HOPPER_SCHEDULE_H
#define CUDA_HOPPER_SCHEDULE_H

#ifdef __CUDACC__
#define HOPPER_CALL static __device__ __forceinline__
#else
#define HOPPER_CALL static inline
#endif

/* Stands for no bound, and is the greatest of any bound or shift: sums of three fit 32 bits with a position. */
enum { HOPPER_FAR = 1 << 29 };

/* A lot is a head of a sequence; it has `blocks` blocks of rows. Key j is seen by row i if, with
 * d = i + shift (+ keys - queries with `bottom`), d - left <= j <= d + right. */
typedef struct hopper_counts {
    int lots, blocks;
    int section; /* lots whose keys are in use at the same time */
    int sorted;  /* blocks differ in the number of their keys: tiles are ordered by it */
    int queries, keys;
    int left, right, shift, bottom;
} hopper_counts;

typedef struct hopper_tile {
    int lot, block;
} hopper_tile;

/* The tile with number `index`, of lots * blocks. Sorted tiles of a section go from the longest to the shortest and, in
 * every other section, back; the last section ends with the shortest. So neighbours are of similar length. */
HOPPER_CALL hopper_tile hopper_tile_at(const hopper_counts *counts, int index)
{
    hopper_tile tile = {index / counts->blocks, index % counts->blocks};
    if (!counts->sorted)
        return tile;
    const int each = counts->section * counts->blocks, section = index / each,
              first = section * counts->section;
    const int sections = (counts->lots + counts->section - 1) / counts->section;
    const int lots =
        counts->lots - first < counts->section ? counts->lots - first : counts->section;
    index -= first * counts->blocks;
    tile.lot = first + index % lots;
    tile.block = (sections - section) % 2 ? counts->blocks - 1 - index / lots : index / lots;
    return tile;
}

/* The number of the tile that one of `workers` computes in a turn; numbers from lots * blocks on stand for no tile.
 * Sorted tiles are dealt forth and back, which evens out their lengths. */
HOPPER_CALL int hopper_index(const hopper_counts *counts, int worker, int workers, int turn)
{
    return turn * workers + (counts->sorted && turn % 2 ? workers - 1 - worker : worker);
}

HOPPER_CALL int hopper_within(int x, int least, int most)
{
    return x < least ? least : x > most ? most : x;
}

/* The keys that a row sees: from `from` to before `end`. */
HOPPER_CALL int hopper_place(const hopper_counts *counts, int row)
{
    return row + counts->shift + (counts->bottom ? counts->keys - counts->queries : 0);
}
HOPPER_CALL int hopper_from(const hopper_counts *counts, int row)
{
    return counts->left == HOPPER_FAR
               ? 0
               : hopper_within(hopper_place(counts, row) - counts->left, 0, counts->keys);
}
HOPPER_CALL int hopper_end(const hopper_counts *counts, int row)
{
    return counts->right == HOPPER_FAR
               ? counts->keys
               : hopper_within(hopper_place(counts, row) + counts->right + 1, 0, counts->keys);
}

/* The tiles of keys, of `width` each, of a block of rows: from `first` to before `end`, computed from the last to the
 * first. All rows of the block see all keys of the tiles from `open` to before `shut`. */
typedef struct hopper_keys {
    int first, open, shut, end;
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
    seen.open =
        hopper_within((hopper_from(counts, last) + width - 1) / width, seen.first, seen.end);
    seen.shut = hopper_within(hopper_end(counts, row) / width, seen.open, seen.end);
    return seen;
}

#endif
