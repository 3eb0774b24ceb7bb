/* Transposes squares of vectors in registers: as many vectors as one has lanes, in log2 of that
 * many passes. Each pass interleaves every vector with the one half the square after it. */
#ifndef TENON_BACKENDS_CPU_TRANSPOSE_H
#define TENON_BACKENDS_CPU_TRANSPOSE_H

#include "mask.h"

#if defined(__clang__) || __GNUC__ >= 12
#define MIX(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

/* Alternating lanes of a and b: from their first halves, and from their second halves. */
#define LOW_2   0, 2
#define HIGH_2  1, 3
#define LOW_4   0, 4, 1, 5
#define HIGH_4  2, 6, 3, 7
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#define SQUARE(name, vector, index, N, low, high)                    \
    INLINE void transpose_##name(vector *x)                          \
    {                                                                \
        UNROLLED for (int n = N; n > 1; n /= 2)                      \
        {                                                            \
            vector y[N];                                             \
            UNROLLED for (int i = 0; i < N / 2; i++)                 \
            {                                                        \
                y[2 * i] = MIX(index, x[i], x[i + N / 2], low);      \
                y[2 * i + 1] = MIX(index, x[i], x[i + N / 2], high); \
            }                                                        \
            UNROLLED for (int i = 0; i < N; i++) x[i] = y[i];        \
        }                                                            \
    }

#if LANES == 16
SQUARE(f32, vf, vi, 16, LOW_16, HIGH_16)
SQUARE(f64, vd, vl, 8, LOW_8, HIGH_8)
#elif LANES == 8
SQUARE(f32, vf, vi, 8, LOW_8, HIGH_8)
SQUARE(f64, vd, vl, 4, LOW_4, HIGH_4)
#else
SQUARE(f32, vf, vi, 4, LOW_4, HIGH_4)
SQUARE(f64, vd, vl, 2, LOW_2, HIGH_2)
#endif
#undef SQUARE

/* Loads squares of rows that are `row` elements apart, transposed: x[i] has element i of each
 * row. */
#if LANES == 16

/* Vectors are loaded in parts, from rows such that less is left to transpose: partial loads
 * alternate with shuffles, which only one port executes. f32 uses halves, because quarters would
 * need too many loads. */
INLINE __m512 load_halves(const float *from, int64_t apart)
{
    const __m512d v = _mm512_castpd256_pd512((__m256d)_mm256_loadu_ps(from));
    return (__m512)_mm512_insertf64x4(v, (__m256d)_mm256_loadu_ps(from + apart), 1);
}

/* Four elements of each of 8 rows: element i in quarters 0 and 2, element i + 4 in quarters 1 and
 * 3. */
INLINE void load_transposed_halves(const float *from, int64_t row, __m512 *x)
{
    __m512 v[4];
    UNROLLED for (int i = 0; i < 4; i++) v[i] = load_halves(from + i * row, 4 * row);
    UNROLLED for (int i = 0; i < 4; i += 2)
    {
        const __m512 low = i == 0 ? _mm512_unpacklo_ps(v[0], v[1]) : _mm512_unpackhi_ps(v[0], v[1]);
        const __m512 high =
            i == 0 ? _mm512_unpacklo_ps(v[2], v[3]) : _mm512_unpackhi_ps(v[2], v[3]);
        x[i] = (__m512)_mm512_unpacklo_pd((__m512d)low, (__m512d)high);
        x[i + 1] = (__m512)_mm512_unpackhi_pd((__m512d)low, (__m512d)high);
    }
}

INLINE void load_transposed_f32(const float *from, int64_t row, vf *x)
{
    UNROLLED for (int half = 0; half < 16; half += 8)
    {
        __m512 first[4], second[4];
        load_transposed_halves(from + half, row, first);
        load_transposed_halves(from + 8 * row + half, row, second);
        UNROLLED for (int i = 0; i < 4; i++)
        {
            x[half + i] = (vf)_mm512_shuffle_f32x4(first[i], second[i], 0x88);
            x[half + i + 4] = (vf)_mm512_shuffle_f32x4(first[i], second[i], 0xdd);
        }
    }
}

INLINE __m512d load_quarters(const double *from, int64_t apart)
{
    __m512d v = _mm512_castpd128_pd512(_mm_loadu_pd(from));
    v = _mm512_mask_broadcast_f64x2(v, 0x0c, _mm_loadu_pd(from + apart));
    v = _mm512_mask_broadcast_f64x2(v, 0x30, _mm_loadu_pd(from + 2 * apart));
    return _mm512_mask_broadcast_f64x2(v, 0xc0, _mm_loadu_pd(from + 3 * apart));
}

INLINE void load_transposed_f64(const double *from, int64_t row, vd *x)
{
    UNROLLED for (int i = 0; i < 8; i += 2)
    {
        const __m512d a = load_quarters(from + i, 2 * row);
        const __m512d b = load_quarters(from + row + i, 2 * row);
        x[i] = (vd)_mm512_unpacklo_pd(a, b);
        x[i + 1] = (vd)_mm512_unpackhi_pd(a, b);
    }
}

#else

INLINE void load_transposed_f32(const float *from, int64_t row, vf *x)
{
    UNROLLED for (int i = 0; i < LANES; i++) x[i] = load_f32(from + i * row);
    transpose_f32(x);
}

INLINE void load_transposed_f64(const double *from, int64_t row, vd *x)
{
    UNROLLED for (int i = 0; i < LANES / 2; i++) x[i] = load_f64(from + i * row);
    transpose_f64(x);
}

#endif

#endif
