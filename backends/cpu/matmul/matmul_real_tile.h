/* The micro-kernel of f32 or f64, which sums one tile in registers. Include after a family
 * (shared/family_f32_inc.h).
 *
 * The accumulators, rows by vectors, fill the registers beside a row of B and one element of A.
 * Each accumulator starts at 0 and adds its products one after the other, with one rounding for
 * each if there is fma: so it has the same bits in any tile. */
#ifndef TENON_BACKENDS_CPU_MATMUL_REAL_TILE_H
#define TENON_BACKENDS_CPU_MATMUL_REAL_TILE_H

#include "../shared/steps.h"

/* The accumulators; `rows` by `vectors` of them are used. Both are constants wherever they are
 * arguments. */
typedef VECTOR F(sums)[TNI_MM_TILE_ROWS][TNI_MM_TILE_VECTORS];

#define EACH_SUM UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int j = 0; j < vectors; j++)

/* One step along k: x(i) is row i's element of A. */
#define ADD_PRODUCTS(x)                                                                     \
    UNROLLED for (int i = 0; i < rows; i++)                                                 \
    {                                                                                       \
        const VECTOR x_ = F(splat)(x);                                                      \
        UNROLLED for (int j = 0; j < vectors; j++) sum[i][j] = F(fma)(x_, y[j], sum[i][j]); \
        if (i % 4 == 3 || i + 1 == rows)                                                    \
            STEP_ENDS();                                                                    \
    }

/* The same with a packed panel of A: Arm multiplies by a lane of a vector. */
#define ADD_PANEL(a)                                                                        \
    UNROLLED for (int v = 0; v < rows; v += WIDTH)                                          \
    {                                                                                       \
        const VECTOR x_ = F(load)((a) + v);                                                 \
        UNROLLED for (int i = 0; i < WIDTH; i++) UNROLLED for (int j = 0; j < vectors; j++) \
        {                                                                                   \
            if (v + i < rows)                                                               \
                sum[v + i][j] = F(fma_lane)(x_, i, y[j], sum[v + i][j]);                    \
        }                                                                                   \
        if (v / WIDTH % 2 || v + WIDTH >= rows)                                             \
            STEP_ENDS();                                                                    \
    }

/* From packed panels: A's has TILE_ROWS rows, B's has whole vectors. A prefetch at every step brings
 * the next panel into the second-level cache while this one is multiplied. */
SPECIAL void F(sum_packed)(const tni_mm_tile *t, F(sums) sum, const int rows, const int vectors)
{
    const REAL *a = t->a, *b = t->b;
    uintptr_t next = (uintptr_t)t->next;
    UNROLLED_2 for (int64_t p = t->depth; p > 0; p--)
    {
        VECTOR y[TNI_MM_TILE_VECTORS];
        __builtin_prefetch((const char *)next, 0, 2);
        next += (uintptr_t)t->next_step;
        UNROLLED for (int j = 0; j < vectors; j++) y[j] = F(load)(b + j * WIDTH);
#if defined(__aarch64__)
        ADD_PANEL(a)
#else
        ADD_PRODUCTS(a[i])
#endif
        a += TILE_ROWS;
        b += TILE_COLUMNS;
    }
}

/* Hides a value from the compiler, so that it does not derive one address from another, step by
 * step. */
#define OPAQUE(x) __asm__("" : "+r"(x))

/* Operands are read in place; `last` is where the last vector begins. Four rows of A share a
 * pointer. Masked loads cost as much as a product, so only a single vector that is not `whole` uses
 * them. */
SPECIAL void F(sum_in_place)(const tni_mm_tile *t, const char *first, const char *b, F(sums) sum,
                             const int rows, const int vectors, const bool whole, int64_t last,
                             const bool far)
{
    const int64_t size = sizeof(REAL), row = t->a_row * size;
    const char *ahead = b + t->ahead * t->b_step * size;
    const F(mask) some = F(mask_first)(t->last);
    const char *a[(TNI_MM_TILE_ROWS + 3) / 4];
    int64_t thrice = 3 * row, a_step = t->a_step * size, b_step = t->b_step * size;
    OPAQUE(thrice);
    OPAQUE(a_step);
    OPAQUE(b_step);
    UNROLLED for (int i = 0; i < rows; i += 4)
    {
        a[i / 4] = first + i * row;
        OPAQUE(a[i / 4]);
    }
    UNROLLED_2 for (int64_t p = t->depth; p > 0; p--)
    {
        VECTOR y[TNI_MM_TILE_VECTORS];
        if (far) {
            UNROLLED for (int j = 0; j < vectors; j++) __builtin_prefetch(ahead + j * WIDTH * size);
            ahead += b_step;
        }
        UNROLLED for (int j = 0; j < vectors; j++) y[j] =
            whole ? F(load)((const REAL *)(const void *)b + (j + 1 < vectors ? j * WIDTH : last))
                  : F(load_some)((const REAL *)(const void *)b, some);
        ADD_PRODUCTS(
            *(const F(loose) *)(const void *)(a[i / 4] + (i % 4 == 3 ? thrice : i % 4 * row)))
        UNROLLED for (int i = 0; i < rows; i += 4) a[i / 4] += a_step;
        b += b_step;
    }
}

#include "matmul_fold.h"

/* Adds the previous sums, if any, and stores. All loads are done before any store. */
SPECIAL void F(sums_store)(const tni_mm_tile *t, REAL *to, F(sums) sum, const int rows,
                           const int vectors, const bool whole, int64_t last)
{
    const F(mask) some = F(mask_first)(t->last);
    const REAL *from = t->from;
    const int64_t from_row = t->from_row, to_row = t->to_row;
    if (from)
        EACH_SUM
        {
            const REAL *at = from + i * from_row + (j + 1 < vectors ? j * WIDTH : last);
            sum[i][j] += whole || j + 1 < vectors ? F(load)(at) : F(load_some)(at, some);
        }
    EACH_SUM
    {
        REAL *at = to + i * to_row + (j + 1 < vectors ? j * WIDTH : last);
        if (whole || j + 1 < vectors)
            F(store)(at, sum[i][j]);
        else
            F(store_some)(at, some, sum[i][j]);
    }
}

SPECIAL void F(tile_packed)(const tni_mm_tile *t, const int rows, const int vectors)
{
    F(sums) sum;
    EACH_SUM
    {
        __builtin_prefetch((const REAL *)t->to + i * t->to_row + j * WIDTH, 0, 2);
        sum[i][j] = (VECTOR){0};
    }
    F(sum_packed)(t, sum, rows, vectors);
    if (t->last == WIDTH)
        F(sums_store)(t, t->to, sum, rows, vectors, true, (vectors - 1) * WIDTH);
    else
        F(sums_store)(t, t->to, sum, rows, vectors, false, (vectors - 1) * WIDTH);
}

/* The last of several vectors ends at the end of the tile: lanes that overlap the vector before are
 * computed twice, with the same bits. */
SPECIAL void F(tiles_in_place)(const tni_mm_tile *t, const int rows, const int vectors,
                               const bool whole)
{
    const int64_t last = vectors > 1 ? (vectors - 2) * WIDTH + t->last : 0;
    const char *a = t->a, *b = t->b;
    char *to = t->to;
    for (int64_t left = t->queue ? t->queue->count : 1;;) {
        F(sums) sum;
        EACH_SUM
        {
            sum[i][j] = (VECTOR){0};
        }
        if (vectors == 2 && t->ahead > 0)
            F(sum_in_place)(t, a, b, sum, rows, vectors, whole, last, true);
        else
            F(sum_in_place)(t, a, b, sum, rows, vectors, whole, last, false);
        F(sums_store)(t, (REAL *)(void *)to, sum, rows, vectors, whole, last);
        if (--left == 0)
            break;
        a += t->queue->a_next;
        b += t->queue->b_next;
        to += t->queue->to_next;
    }
}

SPECIAL void F(tile_in_place)(const tni_mm_tile *t, const int rows, const int vectors)
{
    const int fold = vectors == 1 ? F(folds)(t) : 1;
    if (fold == 2)
        F(tiles_folded)(t, rows, 2);
    else if (fold == 4)
        F(tiles_folded)(t, rows, 4);
    else if (vectors > 1 || t->last == WIDTH)
        F(tiles_in_place)(t, rows, vectors, true);
    else
        F(tiles_in_place)(t, rows, vectors, false);
}
#undef EACH_SUM
#undef ADD_PRODUCTS
#undef ADD_PANEL

#endif
