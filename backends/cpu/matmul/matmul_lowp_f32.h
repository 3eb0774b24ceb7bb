/* Epilogue of f32 sums for tiles that are summed faster than matmul_finish.h finishes them: vector
 * by vector, without a buffer in between, if the rows of out are contiguous. Results are the same
 * as with matmul_finish.h. */
#ifndef TENON_BACKENDS_CPU_MATMUL_LOWP_F32_H
#define TENON_BACKENDS_CPU_MATMUL_LOWP_F32_H

#include "../shared/block.h"
#include "../shared/vector_math.h"
#include "matmul_panels.h"

#include "../shared/family_f32_inc.h"

#include "matmul_finish.h"

#include "../shared/family_end_inc.h"

/* Loads n contiguous elements, 1 to LANES. */
INLINE vf read_some(tn_dtype dtype, const char *from, int64_t n)
{
    _Alignas(64) char room[4 * LANES] = {0};
    const int64_t size = dtype == TN_F32 ? 4 : 2;
    if (n < LANES) {
        memcpy(room, from, (size_t)(n * size));
        from = room;
    }
    return dtype == TN_F32    ? load_f32(from)
           : dtype == TN_BF16 ? widen_bf16(load_u16(from))
                              : widen_f16(load_u16(from));
}

INLINE void write_some(tn_dtype dtype, char *to, int64_t n, vf v)
{
    vh half = dtype == TN_BF16 ? narrow_bf16(v) : narrow_f16(v);
    if (dtype == TN_F32 && n == LANES)
        store_f32(to, v);
    else if (dtype == TN_F32)
        memcpy(to, &v, (size_t)(n * 4));
    else if (n == LANES)
        store_u16(to, half);
    else
        memcpy(to, &half, (size_t)(n * 2));
}

/* One row. A bias is one number for the row, or its columns are contiguous. */
INLINE void finish_together(const tni_mm_finish *f, const tn_dtype dtype, const float *sums,
                            int64_t columns, char *out, const char *bias)
{
    const int64_t size = dtype == TN_F32 ? 4 : 2;
    const vf alpha = splat_f32((float)f->alpha), beta = splat_f32((float)f->beta);
    for (int64_t j = 0; j < columns; j += LANES) {
        int64_t n = columns - j < LANES ? columns - j : LANES;
        char *to = out + j * size;
        vf v = load_f32(sums + j) * alpha;
        if (f->beta != 0)
            v = fma_f32(read_some(dtype, to, n), beta, v);
        if (bias && f->bias_column == 1)
            v += read_some(dtype, bias + j * size, n);
        else if (bias)
            v += splat_f32(read_some(dtype, bias, 1)[0]);
        write_some(dtype, to, n, activated_f32(f->activation, v));
    }
}

/* A tile. Each row of `sums` must have whole vectors. */
static void finish_f32(const tni_mm_finish *f, float *sums, int64_t sums_row, int64_t rows,
                       int64_t columns, char *out, const char *bias)
{
    const int64_t size = f->out_dtype == TN_F32 ? 4 : 2;
    if (f->out_column != 1 ||
        (bias && (f->bias_dtype != f->out_dtype || f->bias_column > 1 || f->bias_column < 0))) {
        finish_tile_f32(f, sums, sums_row, rows, columns, out, bias);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        const float *from = sums + i * sums_row;
        const char *more = bias ? bias + i * f->bias_row * size : NULL;
        char *to = out + i * f->out_row * size;
        switch (f->out_dtype) {
        case TN_F32: finish_together(f, TN_F32, from, columns, to, more); break;
        case TN_BF16: finish_together(f, TN_BF16, from, columns, to, more); break;
        default: finish_together(f, TN_F16, from, columns, to, more);
        }
    }
}

#endif
