/* Squares of vectors, turned in registers: as many vectors as one has lanes, log2 of that many times each
 * mixed with the one half of them after it. */
#ifndef TENON_BACKENDS_CPU_MATMUL_TRANSPOSE_H
#define TENON_BACKENDS_CPU_MATMUL_TRANSPOSE_H

#include "mask.h"

#if defined(__clang__) || __GNUC__ >= 12
#define MIX(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

/* Lanes of a and b in turn, of their first and second halves. */
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

#endif
