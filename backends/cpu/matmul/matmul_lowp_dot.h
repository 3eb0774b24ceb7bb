/* Micro-kernels with instructions that multiply the units of two vectors and add each unit's
 * products to a sum. The includer defines, for one instruction set and one dtype:
 *
 *     SUMS          vu or vf
 *     TILE_ROWS     rows for which there are registers, beside two vectors of B and a unit of A
 *                   (4, 6 or 12)
 *     UNIT          the kind of unit: BYTES, WIDE_BYTES or PAIRS
 *     dot(s, x, y)  s plus the products of the units x, of A, and y, of B
 *     DOT_LANES     if defined, dot_lane(s, x, lane, y) is dot with one unit of x, a constant
 *     FLIP          bits of A's units to invert
 *     BEGINS        whether a panel of B has, after its units, the initial sums of its columns
 *     finish_sums   the epilogue, as finish_i32 of matmul_lowp_i32.h
 *
 * and must have included matmul_lowp_units.h. A sum takes units one after the other in any tile:
 * its bits do not depend on its position. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_DOT_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_DOT_H

#define TILE_EACH_4(X)  X(1) X(2) X(3) X(4)
#define TILE_EACH_6(X)  TILE_EACH_4(X) X(5) X(6)
#define TILE_EACH_12(X) TILE_EACH_6(X) X(7) X(8) X(9) X(10) X(11) X(12)
#if TILE_ROWS == 12
#define TILE_EACH TILE_EACH_12
#elif TILE_ROWS == 6
#define TILE_EACH TILE_EACH_6
#else
#define TILE_EACH TILE_EACH_4
#endif

enum { TILE_COLUMNS = 2 * LANES, STEP_UNITS = 1 };

#include "../shared/steps.h"
#include "matmul_lowp_tile.h"

/* `rows` and `vectors` are constants. */
INLINE void sum_tile(const tile *t, const int rows, const int vectors)
{
    enum { VECTOR_BYTES = 4 * LANES };
    const char *a = t->a, *b = t->b;
    SUMS sum[TILE_ROWS][2];
    UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] =
        BEGINS ? load_sums(b + t->steps * 4 * TILE_COLUMNS + j * VECTOR_BYTES) : (SUMS){0};
    for (int64_t q = t->steps; q > 0; q--, a += 4 * TILE_ROWS, b += 4 * TILE_COLUMNS) {
        vu y[2];
        UNROLLED for (int j = 0; j < vectors; j++) y[j] = (vu)load_i32(b + j * VECTOR_BYTES);
#if defined(DOT_LANES)
        UNROLLED for (int v = 0; v < rows; v += LANES)
        {
            const vu x = (vu)load_i32(a + 4 * v);
            UNROLLED for (int i = 0; i < LANES; i++) UNROLLED for (int j = 0; j < vectors; j++)
            {
                if (v + i < rows)
                    sum[v + i][j] = dot_lane(sum[v + i][j], x, i, y[j]);
            }
        }
        STEP_ENDS();
#else
        UNROLLED for (int i = 0; i < rows; i++)
        {
            uint32_t unit;
            memcpy(&unit, a + 4 * i, sizeof unit);
            const vu x = unit - (vu){0};
            UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = dot(sum[i][j], x, y[j]);
        }
#endif
    }
    if (t->from) {
        UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++)
        {
            const char *from = t->from + i * t->from_row + j * VECTOR_BYTES;
            sum[i][j] += j + 1 < vectors ? load_sums(from) : load_some_sums(from, t->last);
        }
    }
    UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++)
    {
        char *to = t->to + i * t->to_row + j * VECTOR_BYTES;
        if (j + 1 < vectors)
            store_i32(to, (vi)sum[i][j]);
        else
            store_some_sums(to, t->last, sum[i][j]);
    }
}

typedef void tile_fn(const tile *t, bool wide);

#define TILE(rows)                                    \
    static void tile_##rows(const tile *t, bool wide) \
    {                                                 \
        if (wide)                                     \
            sum_tile(t, rows, 2);                     \
        else                                          \
            sum_tile(t, rows, 1);                     \
    }
TILE_EACH(TILE)
#undef TILE

#define TILE(rows) tile_##rows,
static tile_fn *const tiles[TILE_ROWS] = {TILE_EACH(TILE)};
#undef TILE

static void sum_any_tile(const tile *t)
{
    tiles[t->rows - 1](t, t->vectors > 1);
}

static void pack_a(const tni_mm_pack *job)
{
    pack_units(
        (packing){.sort = UNIT, .order = BY_DEPTH, .width = TILE_ROWS, .units = 1, .flip = FLIP},
        job);
}

static void pack_b(const tni_mm_pack *job)
{
    pack_units(
        (packing){
            .sort = UNIT, .order = BY_DEPTH, .width = TILE_COLUMNS, .units = 1, .sums = BEGINS},
        job);
}

#define DOT_SET(sums_dtype, chunk, nanoseconds)                                      \
    {                                                                                \
        .rows = TILE_ROWS, .columns = TILE_COLUMNS, .depth = (chunk),                \
        .group = UNIT == BYTES ? 4 : 2, .a_size = UNIT == BYTES ? 1 : 2,             \
        .b_size = UNIT == BYTES ? 1 : 2, .b_more = BEGINS ? TILE_COLUMNS * 4 : 0,    \
        .acc = (sums_dtype), .acc_size = 4, .cost = (nanoseconds), .pack_a = pack_a, \
        .pack_b = pack_b, .block = block,                                            \
    }

#endif
