/* Micro-kernels for products of panels. Rows of A are read in place, B is a panel of COLUMNS
 * columns, and a tile is up to TILE_ROWS rows of A by one or two vectors of B. Include after a
 * family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_TILES_H
#define TENON_BACKENDS_CPU_ATTENTION_TILES_H

#include "../shared/steps.h"

/* The accumulators; `rows` by `vectors` of them are used. Both are constants wherever they are
 * arguments. */
typedef VECTOR F(tile_sums)[TILE_ROWS][2];

#define EACH_SUM UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++)

/* Hides a value from the compiler, so that it does not derive one address from another, step by
 * step. */
#define OPAQUE(x) __asm__("" : "+r"(x))

/* Prefetch distance of B in steps: it comes from the second-level cache. */
enum { F(B_AHEAD) = 16 };

#if defined(__aarch64__)
/* The steps of tile_add that fill whole vectors of A, by whose lanes Arm multiplies. Returns their
 * number. */
SPECIAL int64_t F(tile_add_lanes)(const REAL *a, int64_t a_row, const REAL *b, int64_t b_step,
                                  int64_t depth, F(tile_sums) sum, const int rows,
                                  const int vectors)
{
    const uintptr_t ahead = (uintptr_t)(F(B_AHEAD) * b_step) * sizeof(REAL);
    int64_t p = 0;
    for (; p + WIDTH <= depth; p += WIDTH, a += WIDTH) {
        VECTOR x[TILE_ROWS];
        UNROLLED for (int i = 0; i < rows; i++) x[i] = F(load)(a + i * a_row);
        UNROLLED for (int lane = 0; lane < WIDTH; lane++)
        {
            VECTOR y[2];
            __builtin_prefetch((const void *)((uintptr_t)b + ahead));
            UNROLLED for (int j = 0; j < vectors; j++) y[j] = F(load)(b + j * WIDTH);
            EACH_SUM sum[i][j] = F(fma_lane)(x[i], lane, y[j], sum[i][j]);
            b += b_step;
            STEP_ENDS();
        }
    }
    return p;
}
#endif

/* Four rows of A share a pointer. */
SPECIAL void F(tile_add)(const REAL *from, int64_t a_row, const REAL *b, int64_t b_step,
                         int64_t depth, F(tile_sums) sum, const int rows, const int vectors)
{
#if defined(__aarch64__)
    const int64_t done = F(tile_add_lanes)(from, a_row, b, b_step, depth, sum, rows, vectors);
    from += done;
    b += done * b_step;
    depth -= done;
#endif
    const int64_t row = a_row * (int64_t)sizeof(REAL);
    const char *a[(TILE_ROWS + 3) / 4];
    const uintptr_t ahead = (uintptr_t)(F(B_AHEAD) * b_step) * sizeof(REAL);
    int64_t thrice = 3 * row;
    OPAQUE(thrice);
    UNROLLED for (int i = 0; i < rows; i += 4)
    {
        a[i / 4] = (const char *)from + i * row;
        OPAQUE(a[i / 4]);
    }
    UNROLLED_2 for (int64_t p = depth; p > 0; p--)
    {
        VECTOR y[2];
        UNROLLED for (int j = 0; j < vectors; j++)
        {
            __builtin_prefetch((const void *)((uintptr_t)(b + j * WIDTH) + ahead));
            y[j] = F(load)(b + j * WIDTH);
        }
        UNROLLED for (int i = 0; i < rows; i++)
        {
            const VECTOR x = F(splat)(
                *(const F(loose) *)(const void *)(a[i / 4] + (i % 4 == 3 ? thrice : i % 4 * row)));
            UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = F(fma)(x, y[j], sum[i][j]);
        }
        UNROLLED for (int i = 0; i < rows; i += 4) a[i / 4] += sizeof(REAL);
        b += b_step;
    }
}

/* As tile_add, for a transposed A: its rows are contiguous and its steps are a_row apart. */
SPECIAL void F(tile_add_transposed)(const REAL *a, int64_t a_row, const REAL *b, int64_t depth,
                                    F(tile_sums) sum, const int rows, const int vectors)
{
    for (int64_t p = depth; p > 0; p--) {
        VECTOR y[2];
        UNROLLED for (int j = 0; j < vectors; j++) y[j] = F(load)(b + j * WIDTH);
        STEP_ENDS();
        UNROLLED for (int i = 0; i < rows; i++)
        {
            const VECTOR x = F(splat)(a[i]);
            UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = F(fma)(x, y[j], sum[i][j]);
        }
        a += a_row;
        b += COLUMNS;
    }
}

/* Arguments of all tile functions; `shrink`, for values, is the factor of the previous sums. */
typedef struct F(tile) {
    const REAL *a, *b;
    int64_t a_row, depth;
    int64_t b_step; /* for values: elements from one step to the next */
    REAL *to;
    int64_t to_row;
    const REAL *shrink;
} F(tile);

SPECIAL void F(tile_scores)(const F(tile) * t, const int rows)
{
    const int vectors = 2;
    F(tile_sums) sum;
    EACH_SUM
    {
        sum[i][j] = (VECTOR){0};
    }
    F(tile_add)(t->a, t->a_row, t->b, COLUMNS, t->depth, sum, rows, vectors);
    EACH_SUM
    {
        F(store)(t->to + i * t->to_row + j * WIDTH, sum[i][j]);
    }
}

SPECIAL void F(tile_values)(const F(tile) * t, const int rows, const int vectors)
{
    F(tile_sums) sum;
    EACH_SUM
    {
        sum[i][j] = F(load)(t->to + i * t->to_row + j * WIDTH) * F(splat)(t->shrink[i]);
    }
    F(tile_add)(t->a, t->a_row, t->b, t->b_step, t->depth, sum, rows, vectors);
    EACH_SUM
    {
        F(store)(t->to + i * t->to_row + j * WIDTH, sum[i][j]);
    }
}
/* Adds to the previous contents. */
SPECIAL void F(tile_transposed)(const F(tile) * t, const int rows, const int vectors)
{
    F(tile_sums) sum;
    EACH_SUM
    {
        sum[i][j] = F(load)(t->to + i * t->to_row + j * WIDTH);
    }
    F(tile_add_transposed)(t->a, t->a_row, t->b, t->depth, sum, rows, vectors);
    EACH_SUM
    {
        F(store)(t->to + i * t->to_row + j * WIDTH, sum[i][j]);
    }
}
#undef EACH_SUM

typedef void F(tile_fn)(const F(tile) * tile);

#define TILES(rows)                                            \
    static void F(scores_##rows)(const F(tile) * tile)         \
    {                                                          \
        F(tile_scores)(tile, rows);                            \
    }                                                          \
    static void F(values_##rows##_1)(const F(tile) * tile)     \
    {                                                          \
        F(tile_values)(tile, rows, 1);                         \
    }                                                          \
    static void F(values_##rows##_2)(const F(tile) * tile)     \
    {                                                          \
        F(tile_values)(tile, rows, 2);                         \
    }                                                          \
    static void F(transposed_##rows##_1)(const F(tile) * tile) \
    {                                                          \
        F(tile_transposed)(tile, rows, 1);                     \
    }                                                          \
    static void F(transposed_##rows##_2)(const F(tile) * tile) \
    {                                                          \
        F(tile_transposed)(tile, rows, 2);                     \
    }
EACH_HEIGHT(TILES)
#undef TILES

#define SCORES(rows)       [rows - 1] = F(scores_##rows),
#define VALUES_1(rows)     [rows - 1] = F(values_##rows##_1),
#define VALUES_2(rows)     [rows - 1] = F(values_##rows##_2),
#define TRANSPOSED_1(rows) [rows - 1] = F(transposed_##rows##_1),
#define TRANSPOSED_2(rows) [rows - 1] = F(transposed_##rows##_2),
static F(tile_fn) *const F(score_tiles)[TILE_ROWS] = {EACH_HEIGHT(SCORES)};
static F(tile_fn) *const
    F(value_tiles)[2][TILE_ROWS] = {{EACH_HEIGHT(VALUES_1)}, {EACH_HEIGHT(VALUES_2)}};
static F(tile_fn) *const
    F(transposed_tiles)[2][TILE_ROWS] = {{EACH_HEIGHT(TRANSPOSED_1)}, {EACH_HEIGHT(TRANSPOSED_2)}};
#undef SCORES
#undef VALUES_1
#undef VALUES_2
#undef TRANSPOSED_1
#undef TRANSPOSED_2

#endif
