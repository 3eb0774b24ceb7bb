/* Part of matmul_real_tile.h: tiles whose columns fill half or a quarter of a vector, so that a
 * vector holds two or four rows. Products are summed in the same order as in all tiles. */
#ifndef TENON_BACKENDS_CPU_MATMUL_FOLD_H
#define TENON_BACKENDS_CPU_MATMUL_FOLD_H

#if LANES == 16

/* Rows per vector in such a tile; 1 for any other tile. */
INLINE int F(folds)(const tni_mm_tile *t)
{
    return t->from ? 1 : t->last == WIDTH / 2 ? 2 : t->last == WIDTH / 4 ? 4 : 1;
}

/* Loads WIDTH / fold columns, repeated `fold` times. */
INLINE VECTOR F(load_folded)(const void *from, const int fold)
{
#if defined(REAL_F32)
    return fold == 2 ? (VECTOR)_mm512_broadcast_f32x8(_mm256_loadu_ps(from))
                     : (VECTOR)_mm512_broadcast_f32x4(_mm_loadu_ps(from));
#else
    return fold == 2 ? (VECTOR)_mm512_broadcast_f64x4(_mm256_loadu_pd(from))
                     : (VECTOR)_mm512_broadcast_f64x2(_mm_loadu_pd(from));
#endif
}

/* Mask of the lanes of row i of `fold`. */
INLINE F(mask) F(fold_mask)(const int i, const int fold)
{
    return (F(mask))(((1u << WIDTH / fold) - 1) << i * WIDTH / fold);
}

/* Broadcasts one number to the lanes in `some`. */
INLINE VECTOR F(splat_some)(VECTOR v, F(mask) some, const void *from)
{
#if defined(REAL_F32)
    return (VECTOR)_mm512_mask_broadcastss_ps((__m512)v, some, _mm_load_ss(from));
#else
    return (VECTOR)_mm512_mask_broadcastsd_pd((__m512d)v, some, _mm_load_sd(from));
#endif
}

/* Stores the sums of one matrix; row by row if the rows are not contiguous. */
SPECIAL void F(fold_store)(REAL *to, int64_t to_row, const VECTOR *sum, const int rows,
                           const int fold)
{
    const int columns = WIDTH / fold;
    UNROLLED for (int i = 0; i < rows; i++)
    {
        const VECTOR v = sum[i / fold];
        REAL *at = to + i * to_row;
        const int within = i % fold, left = (rows - i) * columns;
        if (to_row != columns) {
            F(store_some)(at - within * columns, F(fold_mask)(within, fold), v);
        } else if (within == 0 && left >= WIDTH) {
            F(store)(at, v);
        } else if (within == 0) {
            F(store_some)(at, F(mask_first)(left), v);
        }
    }
}

/* If the last vector has unused rows, they repeat its first row and are not stored. */
SPECIAL void F(fold_sum)(const tni_mm_tile *t, const char *a, const char *b, VECTOR *sum,
                         const int rows, const int fold)
{
    const int64_t size = sizeof(REAL), row = t->a_row * size;
    const int64_t a_step = t->a_step * size, b_step = t->b_step * size;
    UNROLLED for (int i = 0; i < rows; i += fold) sum[i / fold] = (VECTOR){0};
    for (int64_t p = t->depth; p > 0; p--, a += a_step, b += b_step) {
        const VECTOR y = F(load_folded)(b, fold);
        UNROLLED for (int i = 0; i < rows; i += fold)
        {
            VECTOR x = F(splat)(*(const F(loose) *)(const void *)(a + i * row));
            UNROLLED for (int q = 1; q < fold; q++)
            {
                if (i + q < rows)
                    x = F(splat_some)(x, F(fold_mask)(q, fold), a + (i + q) * row);
            }
            sum[i / fold] = F(fma)(x, y, sum[i / fold]);
        }
    }
}

SPECIAL void F(tiles_folded)(const tni_mm_tile *t, const int rows, const int fold)
{
    const char *a = t->a, *b = t->b;
    char *to = t->to;
    for (int64_t left = t->queue ? t->queue->count : 1;;) {
        VECTOR sum[TNI_MM_TILE_ROWS / 2];
        F(fold_sum)(t, a, b, sum, rows, fold);
        F(fold_store)((REAL *)(void *)to, t->to_row, sum, rows, fold);
        if (--left == 0)
            break;
        a += t->queue->a_next;
        b += t->queue->b_next;
        to += t->queue->to_next;
    }
}

#else

INLINE int F(folds)(const tni_mm_tile *t)
{
    (void)t;
    return 1;
}

INLINE void F(tiles_folded)(const tni_mm_tile *tile, const int rows, const int fold)
{
    (void)tile;
    (void)rows;
    (void)fold;
}

#endif

#endif
