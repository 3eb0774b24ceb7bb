/* Micro-kernels: some rows times a panel. Include after PER and its functions. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_QUANTIZED_TILES_H
#define TENON_BACKENDS_CPU_ATTENTION_QUANTIZED_TILES_H

#include "../shared/mask.h"
#include "attention_quantized_pass.h"

/* Arguments of all of them. `a` has rows of units, or of floats, `a_row` bytes apart, and `b` is a
 * panel with `depth` lines. Sums of integers start at begin[row]; values are shrunk, and the sums
 * times grow[row] are added to them. */
typedef struct tile {
    const char *a;
    const char *b;
    int64_t a_row, depth;
    const int32_t *begin;
    int32_t *sums;
    int64_t sums_row;
    float *values;
    int64_t values_row;
    const float *shrink, *grow;
} tile;

#define EACH_SUM UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < 2; j++)

typedef vu integer_sums[TILE_ROWS][2];

INLINE vu splat_unit(const char *at)
{
    uint32_t unit;
    memcpy(&unit, at, sizeof unit);
    return unit - (vu){0};
}

/* Adds products of units. In products with keys, the panel has the unsigned integers; in those with
 * values, the rows do. */
SPECIAL void add_units(const tile *t, integer_sums sum, const bool keys, const int rows)
{
    const char *a = t->a, *b = t->b;
    const int64_t row = t->a_row;
    for (int64_t p = 0; p < t->depth; p++, a += 4, b += 4 * PANEL) {
        const vu y[2] = {load_u32(b), load_u32(b + 4 * LANES)};
        UNROLLED for (int i = 0; i < rows; i++)
        {
            const vu x = splat_unit(a + i * row);
            UNROLLED for (int j = 0; j < 2; j++) sum[i][j] =
                keys ? dot(sum[i][j], y[j], x) : dot(sum[i][j], x, y[j]);
        }
    }
}

SPECIAL void tile_scores(const tile *t, const int rows)
{
    integer_sums sum;
    EACH_SUM
    {
        sum[i][j] = (uint32_t)t->begin[i] - (vu){0};
    }
    add_units(t, sum, true, rows);
    EACH_SUM
    {
        store_u32(t->sums + i * t->sums_row + j * LANES, sum[i][j]);
    }
}

SPECIAL void add_values(const tile *t, int i, int j, vf sum)
{
    float *to = t->values + i * t->values_row + j * LANES;
    store_f32(to, fma_f32(sum, splat_f32(t->grow[i]), load_f32(to) * splat_f32(t->shrink[i])));
}

SPECIAL void tile_integers(const tile *t, const int rows)
{
    integer_sums sum;
    EACH_SUM
    {
        sum[i][j] = (vu){0};
    }
    add_units(t, sum, false, rows);
    EACH_SUM
    {
        add_values(t, i, j, __builtin_convertvector((vi)sum[i][j], vf));
    }
}

SPECIAL void tile_floats(const tile *t, const int rows)
{
    vf sum[TILE_ROWS][2];
    const char *a = t->a, *b = t->b;
    const int64_t row = t->a_row;
    EACH_SUM
    {
        sum[i][j] = (vf){0};
    }
    for (int64_t p = 0; p < t->depth; p++, a += 4, b += 4 * PANEL) {
        const vf y[2] = {load_f32(b), load_f32(b + 4 * LANES)};
        UNROLLED for (int i = 0; i < rows; i++)
        {
            const vf x = splat_f32(*(const loose_f32 *)(const void *)(a + i * row));
            UNROLLED for (int j = 0; j < 2; j++) sum[i][j] = fma_f32(x, y[j], sum[i][j]);
        }
    }
    EACH_SUM
    {
        add_values(t, i, j, sum[i][j]);
    }
}
#undef EACH_SUM

#define TILES(rows)                            \
    static void scores_##rows(const tile *t)   \
    {                                          \
        tile_scores(t, rows);                  \
    }                                          \
    static void integers_##rows(const tile *t) \
    {                                          \
        tile_integers(t, rows);                \
    }                                          \
    static void floats_##rows(const tile *t)   \
    {                                          \
        tile_floats(t, rows);                  \
    }
EACH_HEIGHT(TILES)
#undef TILES

typedef void tile_fn(const tile *t);
#define SCORES(rows)   [rows - 1] = scores_##rows,
#define INTEGERS(rows) [rows - 1] = integers_##rows,
#define FLOATS(rows)   [rows - 1] = floats_##rows,
static tile_fn *const score_tiles[TILE_ROWS] = {EACH_HEIGHT(SCORES)};
static tile_fn *const integer_tiles[TILE_ROWS] = {EACH_HEIGHT(INTEGERS)};
static tile_fn *const float_tiles[TILE_ROWS] = {EACH_HEIGHT(FLOATS)};
#undef SCORES
#undef INTEGERS
#undef FLOATS

#endif
