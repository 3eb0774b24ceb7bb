#include "matmul_lowp.h"
#include "matmul_lowp_f32.h"
#include "matmul_lowp_units.h"

#define SUMS        vf
#define UNIT        PAIRS
#define finish_sums finish_f32

INLINE vf dot_two(vf sum, vu x, vu y)
{
    return (vf)vbfmmlaq_f32((float32x4_t)sum, vreinterpretq_bf16_u32((uint32x4_t)x),
                            vreinterpretq_bf16_u32((uint32x4_t)y));
}

#include "matmul_lowp_two.h"

enum { DEPTH = 512 };

const tni_mm_set tni_mm_bf16_neon_bf16 = TWO_SET(TN_F32, DEPTH, 0.01);

/* Few rows. Their sums have the same bits: bfmmla adds four products to a sum as two bfdot do, one
 * after the other. */
#define T(name)   name##_bf16
#define X_UNIT    4
#define CHUNK     DEPTH
#define TURN_OVER 0

INLINE vf multiply_bf16(vf sum, vu y, const char *x)
{
    uint32_t unit;
    memcpy(&unit, x, sizeof unit);
    const vu both = unit - (vu){0};
    return (vf)vbfdotq_f32((float32x4_t)sum, vreinterpretq_bf16_u32((uint32x4_t)y),
                           vreinterpretq_bf16_u32((uint32x4_t)both));
}

#include "matmul_lowp_thin_inc.h"

static void lay(const tni_mm_pack *job)
{
    const int64_t step = 2 * LANES;
    for (int64_t i = 0; i < job->lines; i++) {
        const char *from = job->from + i * job->across;
        for (int64_t p = 0; p < job->depth; p += step, from += step * job->along) {
            const vu x = job->along == 2 ? read_line(PAIRS, from, job->depth - p)
                                         : read_apart(PAIRS, from, job->along, job->depth - p);
            store_i32(job->to + i * job->panel + 2 * p, (vi)x);
        }
    }
}

static void finish(const tni_mm_finish *f, char *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias)
{
    finish_f32(f, (float *)(void *)sums, sums_row, rows, columns, out, bias);
}

const tni_mm_thin_set tni_mm_thin_bf16_neon_bf16 = {2 * LANES, 2, lay, few_bf16, finish};
