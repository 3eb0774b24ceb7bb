/* A function for every height and width of a tile, and blocks made of tiles. PACKED_EACH(X, v) is
 * X(1, v), X(2, v) ... for all heights of v vectors. Include after a family
 * (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_MATMUL_REAL_TILES_H
#define TENON_BACKENDS_CPU_MATMUL_REAL_TILES_H

#include "matmul_real_tile.h"

#define PACKED(rows, vectors)                                         \
    static void F(packed_##rows##_##vectors)(const tni_mm_tile *tile) \
    {                                                                 \
        F(tile_packed)(tile, rows, vectors);                          \
    }
PACKED_EACH(PACKED, 1)
PACKED_EACH(PACKED, 2)
#undef PACKED

#define IN_PLACE(rows, vectors)                                         \
    static void F(in_place_##rows##_##vectors)(const tni_mm_tile *tile) \
    {                                                                   \
        F(tile_in_place)(tile, rows, vectors);                          \
    }
IN_PLACE_EACH(IN_PLACE)
#undef IN_PLACE

#define AT(rows, vectors) [vectors - 1][rows - 1] = F(packed_##rows##_##vectors),
static tni_mm_tile_fn *const F(packed_tiles)[2][TILE_ROWS] = {PACKED_EACH(AT, 1)
                                                                  PACKED_EACH(AT, 2)};
#undef AT

/* The last chunk of a tile that needs the epilogue. */
static void F(tile_finish)(tni_mm_tile tile, tni_mm_tile_fn *sum, const tni_mm_finish *finish,
                           int64_t rows, int64_t columns, char *out, const char *bias)
{
    _Alignas(64) REAL room[TILE_SUMS_MOST * WIDTH];
    tile.to = room;
    tile.to_row = TILE_COLUMNS;
    sum(&tile);
    F(finish_tile)(finish, room, TILE_COLUMNS, rows, columns, out, bias);
}

/* The part of the next panel of B that a tile prefetches: a line for each step of k, another part for
 * each row of tiles. The next panels must follow each other in memory. */
INLINE void F(look_ahead)(const tni_mm_block *job, int64_t row, int64_t column, tni_mm_tile *tile)
{
    const int64_t done = row / TILE_ROWS * job->depth * 64;
    tile->next = tile->b;
    tile->next_step = 0;
    if (job->next_b && done < job->b_panel) {
        tile->next = job->next_b + column / TILE_COLUMNS * job->b_panel + done;
        tile->next_step = 64;
    }
}

/* Computes the tile of a block at this row and column. */
static void F(block_tile)(const tni_mm_block *job, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    int64_t rows = least(job->rows - row, TILE_ROWS);
    int64_t columns = least(job->columns - column, TILE_COLUMNS);
    int wide = columns > WIDTH;
    char *out = tni_mm_out_at(job, row, column);
    REAL *sums = (REAL *)(void *)job->sums + row * job->sums_row + column;
    tni_mm_tile tile = {.a = job->a + row / TILE_ROWS * job->a_panel,
                        .b = job->b + column / TILE_COLUMNS * job->b_panel,
                        .a_row = 1,
                        .a_step = TILE_ROWS,
                        .b_step = TILE_COLUMNS,
                        .depth = job->depth,
                        .last = columns - wide * WIDTH,
                        .to = job->last ? (void *)out : sums,
                        .to_row = job->last ? f->out_row : job->sums_row,
                        .from = job->first ? NULL : sums,
                        .from_row = job->sums_row};
    tni_mm_tile_fn *sum = F(packed_tiles)[wide][rows - 1];
    F(look_ahead)(job, row, column, &tile);
    if (!job->last || f->plain) {
        sum(&tile);
        return;
    }
    F(tile_finish)(tile, sum, f, rows, columns, out, tni_mm_bias_at(job, row, column));
}

/* One row of tiles after the other: a panel of A stays in the first-level cache while panels of B
 * come from the second level. */
static void F(block)(const tni_mm_block *job)
{
    for (int64_t row = 0; row < job->rows; row += TILE_ROWS)
        for (int64_t column = 0; column < job->columns; column += TILE_COLUMNS)
            F(block_tile)(job, row, column);
}

#endif
