/* Gradients of attention on Hopper: which tiles of queries and keys are computed, and where their derivatives of scores are in
 * the workspace. Compiled for the host, which tests it, and for the device. It follows hopper_schedule.h. */
#ifndef CUDA_BACKWARD_HOPPER_SCHEDULE_H
#define CUDA_BACKWARD_HOPPER_SCHEDULE_H

enum {
    SLOPE_TILE = 64,         /* queries, and keys, of a tile */
    SLOPE_TILE_BYTES = 8192, /* its slopes, of 16 bits */
    SLOPE_BLOCK_TILES = 2,   /* tiles of keys of a block that computes dK and dV */
    SLOPE_ROW_TILES = 4      /* tiles of queries of a block that computes dQ */
};

/* Which pairs of a tile of queries and a tile of keys count, by position: none; perhaps some; all, and then the tile is
 * whole. */
typedef enum slope_sight { SLOPES_NONE, SLOPES_SOME, SLOPES_ALL } slope_sight;

HOPPER_CALL slope_sight slope_sight_of(const hopper_counts *counts, int query_tile, int key_tile)
{
    const int query = query_tile * SLOPE_TILE, key = key_tile * SLOPE_TILE;
    if (query >= counts->queries || key >= counts->keys)
        return SLOPES_NONE;
    const int last = hopper_clamp(query + SLOPE_TILE - 1, 0, counts->queries - 1);
    const int end = hopper_clamp(key + SLOPE_TILE, 0, counts->keys);
    if (hopper_end(counts, last) <= key || hopper_from(counts, query) >= end)
        return SLOPES_NONE;
    const int is_whole = query + SLOPE_TILE <= counts->queries && key + SLOPE_TILE <= counts->keys;
    return is_whole && hopper_from(counts, last) <= key && hopper_end(counts, query) >= end
               ? SLOPES_ALL
               : SLOPES_SOME;
}

/* Rows from `begin` to before `end`. */
typedef struct slope_range {
    int begin, end;
} slope_range;

/* The queries that see a key by position; none if the key does not exist. */
HOPPER_CALL slope_range slope_queries(const hopper_counts *counts, int key)
{
    const int place = hopper_diagonal(counts, 0);
    slope_range seen = {0, key < counts->keys ? counts->queries : 0};
    if (counts->right != HOPPER_FAR)
        seen.begin = hopper_clamp(key - counts->right - place, 0, counts->queries);
    if (counts->left != HOPPER_FAR && key < counts->keys)
        seen.end = hopper_clamp(key + counts->left - place + 1, 0, counts->queries);
    return seen;
}

/* The tiles of queries that see one of `count` keys from `key` on: contains all tiles whose sight is not SLOPES_NONE. */
HOPPER_CALL slope_range slope_query_tiles(const hopper_counts *counts, int key, int count)
{
    const int last = hopper_clamp(key + count - 1, 0, counts->keys - 1);
    const int begin = slope_queries(counts, key).begin, end = slope_queries(counts, last).end;
    slope_range tiles = {begin / SLOPE_TILE, (end + SLOPE_TILE - 1) / SLOPE_TILE};
    if (key >= counts->keys || begin >= end)
        tiles.begin = tiles.end = 0;
    return tiles;
}

/* The tiles of queries whose sight of the tile of keys from `key` on is SLOPES_ALL. */
HOPPER_CALL slope_range slope_whole_tiles(const hopper_counts *counts, int key)
{
    slope_range tiles = {0, 0};
    if (key + SLOPE_TILE > counts->keys)
        return tiles;
    const int begin = slope_queries(counts, key + SLOPE_TILE - 1).begin;
    tiles.begin = (begin + SLOPE_TILE - 1) / SLOPE_TILE;
    tiles.end = slope_queries(counts, key).end / SLOPE_TILE;
    return tiles;
}

/* Where a block of keys and the blocks of queries have their slopes: those of `tiles` tiles of queries by `key_tiles` tiles of
 * keys of each head, of which tile (query_tile, key_tile) has this number; all tiles of queries of a tile of keys are
 * contiguous. */
HOPPER_CALL long long slope_tile_number(int head, int key_tiles, int tiles, int key_tile,
                                        int query_tile)
{
    return ((long long)head * key_tiles + key_tile) * tiles + query_tile;
}

/* A tile of slopes has a line of 64 queries for each key. The queries are in the order in which a thread that computed them
 * has them in registers, so it writes 8 of them at once: this is the query at a place of the line, and also the place of a
 * query. */
HOPPER_CALL int slope_query_at(int place)
{
    return (place & 0x21) | (place >> 3 & 3) << 1 | (place >> 1 & 3) << 3;
}

/* The bytes before a place of a line: units of 16 bytes are swizzled as TMA would write them. */
HOPPER_CALL int slope_offset(int key, int place)
{
    return key * 128 + ((place >> 3) ^ (key & 7)) * 16 + (place & 7) * 2;
}

#endif
