/* The last few columns of a matrix, which would fill only a small part of a vector. Here the lanes
 * of a vector are rows instead, and A is transposed as it is read. Products are summed in the same
 * order as in all tiles. Include after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_MATMUL_COLUMNS_H
#define TENON_BACKENDS_CPU_MATMUL_COLUMNS_H

#if LANES == 16

/* Elements along k that are transposed at once, and maximum number of columns. */
enum { F(COLUMNS_STEP) = 4, F(COLUMNS_MOST) = WIDTH == 16 ? 6 : 3 };

/* Loads COLUMNS_STEP elements of WIDTH rows, transposed: y[i] has element i of each row. */
INLINE void F(load_rows)(const REAL *from, int64_t row, VECTOR *y)
{
#if defined(REAL_F32)
    __m512 v[4];
    UNROLLED for (int i = 0; i < 4; i++)
    {
        v[i] = _mm512_castps128_ps512(_mm_loadu_ps(from + i * row));
        v[i] = _mm512_mask_broadcast_f32x4(v[i], 0x00f0, _mm_loadu_ps(from + (i + 4) * row));
        v[i] = _mm512_mask_broadcast_f32x4(v[i], 0x0f00, _mm_loadu_ps(from + (i + 8) * row));
        v[i] = _mm512_mask_broadcast_f32x4(v[i], 0xf000, _mm_loadu_ps(from + (i + 12) * row));
    }
    UNROLLED for (int i = 0; i < 4; i += 2)
    {
        const __m512d low =
            (__m512d)(i == 0 ? _mm512_unpacklo_ps(v[0], v[1]) : _mm512_unpackhi_ps(v[0], v[1]));
        const __m512d high =
            (__m512d)(i == 0 ? _mm512_unpacklo_ps(v[2], v[3]) : _mm512_unpackhi_ps(v[2], v[3]));
        y[i] = (VECTOR)_mm512_unpacklo_pd(low, high);
        y[i + 1] = (VECTOR)_mm512_unpackhi_pd(low, high);
    }
#else
    __m512d v[4];
    UNROLLED for (int i = 0; i < 4; i++)
    {
        const double *at = from + (i / 2 * 4 + i % 2) * row;
        v[i] = _mm512_castpd256_pd512(_mm256_loadu_pd(at));
        v[i] = _mm512_mask_broadcast_f64x4(v[i], 0xf0, _mm256_loadu_pd(at + 2 * row));
    }
    UNROLLED for (int i = 0; i < 2; i++)
    {
        const __m512d low =
            i == 0 ? _mm512_unpacklo_pd(v[0], v[1]) : _mm512_unpackhi_pd(v[0], v[1]);
        const __m512d high =
            i == 0 ? _mm512_unpacklo_pd(v[2], v[3]) : _mm512_unpackhi_pd(v[2], v[3]);
        y[i] = (VECTOR)_mm512_shuffle_f64x2(low, high, 0x88);
        y[i + 2] = (VECTOR)_mm512_shuffle_f64x2(low, high, 0xdd);
    }
#endif
}

/* WIDTH rows of `columns` columns (a constant). The tail of k is loaded together with some elements
 * before it, which are already summed and are skipped. */
SPECIAL void F(columns_strip)(const tni_mm_tile *t, const REAL *a, F(loose) * to, const int columns)
{
    const F(loose) *b = t->b;
    VECTOR sum[F(COLUMNS_MOST)], y[F(COLUMNS_STEP)];
    int64_t p = 0;
    UNROLLED for (int j = 0; j < columns; j++) sum[j] = (VECTOR){0};
    for (; p + F(COLUMNS_STEP) <= t->depth; p += F(COLUMNS_STEP)) {
        F(load_rows)(a + p, t->a_row, y);
        UNROLLED for (int i = 0; i < F(COLUMNS_STEP); i++, b += t->b_step)
        {
            UNROLLED for (int j = 0; j < columns; j++) sum[j] =
                F(fma)(F(splat)(b[j]), y[i], sum[j]);
        }
    }
    const int64_t done = p + F(COLUMNS_STEP) - t->depth;
    if (done < F(COLUMNS_STEP)) {
        F(load_rows)(a + t->depth - F(COLUMNS_STEP), t->a_row, y);
        UNROLLED for (int i = 1; i < F(COLUMNS_STEP); i++)
        {
            if (i < done)
                continue;
            UNROLLED for (int j = 0; j < columns; j++) sum[j] =
                F(fma)(F(splat)(b[j]), y[i], sum[j]);
            b += t->b_step;
        }
    }
    _Alignas(64) REAL room[F(COLUMNS_MOST)][WIDTH];
    UNROLLED for (int j = 0; j < columns; j++) F(store)(room[j], sum[j]);
    UNROLLED for (int i = 0; i < WIDTH; i++)
    {
        UNROLLED for (int j = 0; j < columns; j++) to[i * t->to_row + j] = room[j][i];
    }
}

SPECIAL void F(columns_rows)(const tni_mm_tile *t, int64_t rows, const int columns)
{
    const REAL *a = t->a;
    F(loose) *to = t->to;
    for (; rows > 0; rows -= WIDTH, a += WIDTH * t->a_row, to += WIDTH * t->to_row)
        F(columns_strip)(t, a, to, columns);
}

static void F(columns)(const tni_mm_tile *tile, int64_t rows)
{
    switch (tile->last) {
    case 1: F(columns_rows)(tile, rows, 1); break;
    case 2: F(columns_rows)(tile, rows, 2); break;
#if defined(REAL_F32)
    case 3: F(columns_rows)(tile, rows, 3); break;
    case 4: F(columns_rows)(tile, rows, 4); break;
    case 5: F(columns_rows)(tile, rows, 5); break;
#endif
    default: F(columns_rows)(tile, rows, F(COLUMNS_MOST));
    }
}

#define COLUMNS      F(columns)
#define COLUMNS_MOST F(COLUMNS_MOST)
/* Minimum rows for which this is faster than tiles; it is more than one tile has. */
#define COLUMNS_ROWS (WIDTH == 16 ? 32 : 24)

#else

#define COLUMNS      NULL
#define COLUMNS_MOST 0
#define COLUMNS_ROWS 0

#endif

#endif
