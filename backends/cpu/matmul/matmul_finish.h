/* The epilogue of f32 or f64 products, from sums to out. Include after shared/block.h,
 * shared/vector_math.h and a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_MATMUL_FINISH_H
#define TENON_BACKENDS_CPU_MATMUL_FINISH_H

#include "../shared/activate_inc.h"
#include "../shared/sizes.h"

/* Maximum columns of a tile. */
enum { F(FINISH_COLUMNS) = 64 };

/* One row. Reads whole vectors of `sums`. */
static void F(finish_row)(const tni_mm_finish *f, const REAL *sums, int64_t n, char *out,
                          const char *bias)
{
    _Alignas(64) REAL x[F(FINISH_COLUMNS)], room[F(FINISH_COLUMNS)];
    const strand to = {out, f->out_dtype, (int32_t)dtype_bytes(f->out_dtype), f->out_column,
                       0,   false};
    const REAL alpha = (REAL)f->alpha, beta = (REAL)f->beta;
    for (int64_t i = 0; i < n; i += WIDTH)
        F(store)(x + i, F(load)(sums + i) * alpha);
    if (f->beta != 0) {
        const REAL *old = F(read_block)(&to, 0, n, room);
        for (int64_t i = 0; i < n; i += WIDTH)
            F(store)(x + i, F(fma)(F(load)(old + i), F(splat)(beta), F(load)(x + i)));
    }
    if (bias) {
        const strand from = {(char *)(uintptr_t)bias,
                             f->bias_dtype,
                             (int32_t)dtype_bytes(f->bias_dtype),
                             f->bias_column,
                             0,
                             false};
        const REAL *more = F(read_block)(&from, 0, n, room);
        for (int64_t i = 0; i < n; i += WIDTH)
            F(store)(x + i, F(load)(x + i) + F(load)(more + i));
    }
    F(activate)(f->activation, x, n);
    F(write_block)(&to, 0, n, x);
}

/* A tile of at most FINISH_COLUMNS columns. Each row of `sums` must have whole vectors. */
static void F(finish_tile)(const tni_mm_finish *f, const REAL *sums, int64_t sums_row, int64_t rows,
                           int64_t columns, char *out, const char *bias)
{
    const int64_t out_row = f->out_row * dtype_bytes(f->out_dtype);
    const int64_t bias_row = f->bias_row * dtype_bytes(f->bias_dtype);
    for (int64_t i = 0; i < rows; i++)
        F(finish_row)
    (f, sums + i * sums_row, columns, out + i * out_row, bias ? bias + i * bias_row : NULL);
}

#endif
