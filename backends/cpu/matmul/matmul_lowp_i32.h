/* Epilogue of sums of i8 products. For an out of i32, integers wrap and fractions are truncated;
 * the arithmetic is f64 if there are fractions. For an out of f32, sums are rounded to f32 and
 * finished as f32 sums. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_I32_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_I32_H

#include "matmul_lowp_f32.h"

/* Truncates towards zero to 64 bits, which then wrap to 32; NaN becomes 0. */
INLINE int32_t cut_and_wrap(double value)
{
    if (value != value)
        return 0;
    int64_t wide = value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
    return (int32_t)(uint32_t)(uint64_t)wide;
}

/* One row. Out and bias may have any alignment. */
static void finish_whole(const tni_mm_finish *f, const int32_t *sums, int64_t n, char *out,
                         const char *bias)
{
    const bool exact = f->alpha == 1 && (f->beta == 0 || f->beta == 1);
    if (f->plain) {
        memcpy(out, sums, (size_t)n * sizeof *sums);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = (int64_t)sizeof(int32_t);
        char *to = out + i * f->out_column * size;
        int32_t old = 0, more = 0, result;
        if (f->beta != 0)
            memcpy(&old, to, sizeof old);
        if (bias)
            memcpy(&more, bias + i * f->bias_column * size, sizeof more);
        double value = f->alpha * sums[i];
        value = f->beta != 0 ? value + f->beta * old : value;
        value = bias ? value + more : value;
        result = exact ? (int32_t)((uint32_t)sums[i] + (uint32_t)old + (uint32_t)more)
                       : cut_and_wrap(value);
        memcpy(to, &result, sizeof result);
    }
}

/* A tile of at most BLOCK columns. Each row of `sums` must have whole vectors; `sums` is
 * overwritten. */
static void finish_i32(const tni_mm_finish *f, int32_t *sums, int64_t sums_row, int64_t rows,
                       int64_t columns, char *out, const char *bias)
{
    if (f->out_dtype == TN_I32) {
        for (int64_t i = 0; i < rows; i++)
            finish_whole(f, sums + i * sums_row, columns,
                         out + i * f->out_row * (int64_t)sizeof(int32_t),
                         bias ? bias + i * f->bias_row * (int64_t)sizeof(int32_t) : NULL);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j += LANES) {
            int32_t *at = sums + i * sums_row + j;
            store_f32(at, __builtin_convertvector(load_i32(at), vf));
        }
    }
    finish_f32(f, (float *)(void *)sums, sums_row, rows, columns, out, bias);
}

#endif
