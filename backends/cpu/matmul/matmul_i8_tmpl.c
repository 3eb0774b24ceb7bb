/* Kernels of i8 products, compiled for each instruction set: the build defines ISA.
 *
 * x86 multiplies bytes as u8 times i8. A becomes u8 by adding 128, which makes every sum too large
 * by 128 times the sum of a column of B; so sums start at minus that. Arm multiplies i8 directly,
 * with smmla two rows by two columns at once.
 * Elsewhere, bytes are widened to 16 bits, and an instruction adds two products of those. Nothing
 * saturates, and sums wrap. */
#include "matmul_lowp.h"
#include "matmul_lowp_i32.h"
#include "matmul_lowp_units.h"

#define SUMS vu
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define UNIT   BYTES
#define FLIP   0x80808080
#define BEGINS true
#define DEPTH  1024
#elif defined(__ARM_FEATURE_DOTPROD)
#define UNIT   BYTES
#define FLIP   0
#define BEGINS false
#define DEPTH  1024
#else
#define UNIT   WIDE_BYTES
#define FLIP   0
#define BEGINS false
#define DEPTH  512
#endif
#define finish_sums finish_i32

/* Cost of a multiply-add by instruction set, in nanoseconds. */
#define COST_plain        0.05
#define COST_neon         0.05
#define COST_neon_dotprod 0.01
#define COST_neon_i8mm    0.005
#define COST_avx2         0.015
#define COST_avx_vnni     0.006
#define COST_avx512       0.011
#define COST_avx512_vnni  0.003

INLINE vu dot(vu sum, vu x, vu y)
{
#if defined(__AVX512VNNI__)
    return (vu)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)y);
#elif defined(__AVXVNNI__)
    return (vu)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)y);
#elif defined(__AVX512BW__)
    return sum + (vu)_mm512_madd_epi16((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return sum + (vu)_mm256_madd_epi16((__m256i)x, (__m256i)y);
#elif defined(__SSE2__)
    return sum + (vu)_mm_madd_epi16((__m128i)x, (__m128i)y);
#elif defined(__ARM_FEATURE_DOTPROD)
    return (vu)vdotq_s32((int32x4_t)sum, (int8x16_t)x, (int8x16_t)y);
#elif defined(__aarch64__)
    int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)y));
    int32x4_t high = vmull_high_s16((int16x8_t)x, (int16x8_t)y);
    return sum + (vu)vpaddq_s32(low, high);
#else
    vi low = ((vi)(x << 16) >> 16) * ((vi)(y << 16) >> 16);
    return sum + (vu)low + (vu)(((vi)x >> 16) * ((vi)y >> 16));
#endif
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
INLINE vu dot_two(vu sum, vu x, vu y)
{
    return (vu)vmmlaq_s32((int32x4_t)sum, (int8x16_t)x, (int8x16_t)y);
}

#include "matmul_lowp_two.h"
#define MAKE_SET TWO_SET
#else
#if defined(__AVX512F__) || defined(__aarch64__)
#define TILE_ROWS 12
#else
#define TILE_ROWS 6
#endif
#if defined(__ARM_FEATURE_DOTPROD)
#define DOT_LANES
INLINE vu dot_lane(vu sum, vu x, const int lane, vu y)
{
    const int32x4_t s = (int32x4_t)sum;
    const int8x16_t a = (int8x16_t)x, b = (int8x16_t)y;
    switch (lane) {
    case 0: return (vu)vdotq_laneq_s32(s, b, a, 0);
    case 1: return (vu)vdotq_laneq_s32(s, b, a, 1);
    case 2: return (vu)vdotq_laneq_s32(s, b, a, 2);
    default: return (vu)vdotq_laneq_s32(s, b, a, 3);
    }
}
#endif
#include "matmul_lowp_dot.h"
#define MAKE_SET DOT_SET
#endif

#define T(name)   name##_i8
#define X_UNIT    4
#define X_SIZE    (UNIT == BYTES ? 1 : 2)
#define CHUNK     (INT64_C(1) << 40)
#define TURN_OVER FLIP

INLINE vu multiply_i8(vu sum, vu y, const char *x)
{
    uint32_t unit;
    memcpy(&unit, x, sizeof unit);
    return dot(sum, y, unit - (vu){0});
}

#include "matmul_lowp_thin_inc.h"

static void lay(const tni_mm_pack *job)
{
    const int64_t per = unit_elements(UNIT);
    for (int64_t i = 0; i < job->lines; i++) {
        const char *from = job->from + i * job->across;
        char *to = job->to + i * job->panel;
        vu total = {0};
        for (int64_t p = 0; p < job->depth; p += LANES * per, from += LANES * per * job->along) {
            vu x = job->along == 1 ? read_line(UNIT, from, job->depth - p)
                                   : read_apart(UNIT, from, job->along, job->depth - p);
            total = add_bytes(total, x);
            store_i32(to + p / per * X_UNIT, (vi)x);
        }
        uint32_t begin = 0; /* sums wrap */
        for (int u = 0; u < LANES; u++)
            begin -= 128 * total[u];
        memcpy(to + job->panel - TNI_MM_FEW_MORE, &begin, sizeof begin);
    }
}

static void finish(const tni_mm_finish *f, char *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias)
{
    finish_i32(f, (int32_t *)(void *)sums, sums_row, rows, columns, out, bias);
}

#define COST_(isa)     COST_##isa
#define COST(isa)      COST_(isa)
#define SET_(isa)      tni_mm_i8_##isa
#define SET(isa)       SET_(isa)
#define THIN_SET_(isa) tni_mm_thin_i8_##isa
#define THIN_SET(isa)  THIN_SET_(isa)

const tni_mm_set SET(ISA) = MAKE_SET(TN_I32, DEPTH, COST(ISA));
const tni_mm_thin_set THIN_SET(ISA) = {
    .square = LANES * X_UNIT / X_SIZE,
    .x_size = X_SIZE,
    .lay = lay,
    .sum = few_i8,
    .finish = finish,
};
