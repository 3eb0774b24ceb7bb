/* Micro-kernels with Arm's instructions that multiply two rows of A with two columns of B, 8 bytes
 * of each, and add the four results to a vector of sums. The includer defines, for one dtype:
 *
 *     SUMS              vu or vf
 *     UNIT              BYTES or PAIRS: 8 bytes are two units
 *     dot_two(s, x, y)  s plus the products of two rows and two columns; sums are row by row
 *     finish_sums       the epilogue, as finish_i32 of matmul_lowp_i32.h
 *
 * and must have included matmul_lowp_units.h. A sum takes its products one step after the other in
 * any tile: its bits do not depend on its position. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_TWO_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_TWO_H

#include "../shared/steps.h"

/* 24 registers of sums, 4 of A, and at least one of B. */
enum { TILE_ROWS = 8, TILE_COLUMNS = 3 * LANES, STEP_UNITS = 2 };

#include "matmul_lowp_tile.h"

/* Adds the sums before, if any, and stores a vector of columns of a row. */
INLINE void put_sums(const tile *t, int row, int j, bool whole, SUMS v)
{
    if (row >= t->rows)
        return;
    if (t->from) {
        const char *from = t->from + row * t->from_row + j * (int)sizeof v;
        v += whole ? load_sums(from) : load_some_sums(from, t->last);
    }
    char *to = t->to + row * t->to_row + j * (int)sizeof v;
    if (whole)
        store_i32(to, (vi)v);
    else
        store_some_sums(to, t->last, v);
}

/* `twos`, of rows, and `vectors`, of columns, are constants. */
INLINE void sum_tile(const tile *t, const int twos, const int vectors)
{
    enum { VECTOR_BYTES = 4 * LANES, A_STEP = 8 * TILE_ROWS, B_STEP = 8 * TILE_COLUMNS };
    const char *a = t->a, *b = t->b;
    SUMS sum[TILE_ROWS / 2][TILE_COLUMNS / 2];
    UNROLLED for (int i = 0; i < twos; i++) UNROLLED for (int j = 0; j < 2 * vectors; j++)
        sum[i][j] = (SUMS){0};
    for (int64_t q = t->steps; q > 0; q--, a += A_STEP, b += B_STEP) {
        vu x[TILE_ROWS / 2];
        UNROLLED for (int i = 0; i < twos; i++) x[i] = (vu)load_i32(a + i * VECTOR_BYTES);
        UNROLLED for (int j = 0; j < 2 * vectors; j++)
        {
            const vu y = (vu)load_i32(b + j * VECTOR_BYTES);
            UNROLLED for (int i = 0; i < twos; i++) sum[i][j] = dot_two(sum[i][j], x[i], y);
            if (j % 2)
                STEP_ENDS();
        }
    }
    UNROLLED for (int i = 0; i < twos; i++) UNROLLED for (int j = 0; j < vectors; j++)
    {
        const uint64x2_t left = (uint64x2_t)sum[i][2 * j], right = (uint64x2_t)sum[i][2 * j + 1];
        const bool whole = j + 1 < vectors;
        put_sums(t, 2 * i, j, whole, (SUMS)vzip1q_u64(left, right));
        put_sums(t, 2 * i + 1, j, whole, (SUMS)vzip2q_u64(left, right));
    }
}

#define TILES(twos)                          \
    static void tile_##twos(const tile *t)   \
    {                                        \
        switch (t->vectors) {                \
        case 1: sum_tile(t, twos, 1); break; \
        case 2: sum_tile(t, twos, 2); break; \
        default: sum_tile(t, twos, 3);       \
        }                                    \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
#undef TILES

static void sum_any_tile(const tile *t)
{
    switch (parts(t->rows, 2)) {
    case 1: tile_1(t); break;
    case 2: tile_2(t); break;
    case 3: tile_3(t); break;
    default: tile_4(t);
    }
}

static void pack_a(const tni_mm_pack *job)
{
    pack_units((packing){.sort = UNIT, .order = BY_TWO, .width = TILE_ROWS, .units = 2}, job);
}

static void pack_b(const tni_mm_pack *job)
{
    pack_units((packing){.sort = UNIT, .order = BY_TWO, .width = TILE_COLUMNS, .units = 2}, job);
}

#define TWO_SET(sums_dtype, chunk, nanoseconds)                                    \
    {                                                                              \
        .rows = TILE_ROWS, .columns = TILE_COLUMNS, .depth = (chunk),              \
        .group = UNIT == BYTES ? 8 : 4, .a_size = UNIT == BYTES ? 1 : 2,           \
        .b_size = UNIT == BYTES ? 1 : 2, .acc = (sums_dtype), .acc_size = 4,       \
        .cost = (nanoseconds), .pack_a = pack_a, .pack_b = pack_b, .block = block, \
    }

#endif
