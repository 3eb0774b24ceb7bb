#include "matmul_lowp_f32.h"

static void finish_sums(const tni_mm_finish *f, float *sums, int64_t sums_row, int64_t rows,
                        int64_t columns, char *out, const char *bias);

#define UNIT     PAIRS
#define DEPTH    512
#define MULTIPLY _tile_dpbf16ps

#include "matmul_lowp_amx.h"

/* Whether out is just the rounded sums. The sums are never subnormal, so it does not matter that
 * the instruction flushes subnormals to 0. */
static bool is_rounding(const tni_mm_finish *f)
{
    return f->out_dtype == TN_BF16 && f->out_column == 1 && !f->bias_dtype &&
           f->activation == TN_ACT_NONE && f->alpha == 1 && f->beta == 0;
}

static void finish_sums(const tni_mm_finish *f, float *sums, int64_t sums_row, int64_t rows,
                        int64_t columns, char *out, const char *bias)
{
    if (columns != TILE || !is_rounding(f)) {
        finish_f32(f, sums, sums_row, rows, columns, out, bias);
        return;
    }
    for (int64_t i = 0; i < rows; i++, sums += sums_row, out += 2 * f->out_row)
        _mm512_storeu_si512(
            out, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + SIDE), _mm512_loadu_ps(sums)));
}

const tni_mm_set tni_mm_bf16_amx = AMX_SET(TN_F32);
