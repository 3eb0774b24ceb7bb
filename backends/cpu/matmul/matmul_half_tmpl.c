/* 16-bit elements for the f32 tiles: widened panel by panel, in memory order, and then packed as
 * f32. With few rows, elements are widened in registers and summed in the same order as in those
 * tiles. Compiled for each instruction set: the build defines ISA. */
#include "matmul_kernels.h"
#include "matmul_lowp.h"
#include "matmul_lowp_f32.h"
#include "matmul_lowp_units.h"

enum { ROOM_LINES = 32, ROOM_DEPTH = TNI_MM_DEPTH / 2 };

/* Widens `lines` lines, `across` bytes apart, of `count` elements, `along` bytes apart. */
static void widen_lines(tn_dtype dtype, const char *from, int64_t across, int64_t along,
                        int64_t lines, int64_t count, float *room)
{
    strand line = {(char *)(uintptr_t)from, dtype, 2, along / 2, 0, false};
    for (int64_t i = 0; i < lines; i++, line.data += across)
        (void)read_block_f32(&line, 0, count, room + i * whole(count));
}

/* Widens and packs at most ROOM_DEPTH of the depth of a panel. */
static void widen_part(tn_dtype dtype, const tni_mm_pack *job, void (*pack)(const tni_mm_pack *job))
{
    _Alignas(64) float room[ROOM_LINES * ROOM_DEPTH];
    tni_mm_pack wide = *job;
    wide.from = (const char *)room;
    if (job->across == 2 && job->along != 2) {
        widen_lines(dtype, job->from, job->along, 2, job->depth, job->lines, room);
        wide.across = 4;
        wide.along = 4 * whole(job->lines);
    } else {
        widen_lines(dtype, job->from, job->across, job->along, job->lines, job->depth, room);
        wide.across = 4 * whole(job->depth);
        wide.along = 4;
    }
    pack(&wide);
}

/* Widens and packs a panel of `width` lines, or a part of one, along k in steps of ROOM_DEPTH. */
static void widen_panel(tn_dtype dtype, const tni_mm_pack *job, int64_t width,
                        void (*pack)(const tni_mm_pack *job))
{
    tni_mm_pack part = *job;
    for (int64_t at = 0; at < job->depth; at += ROOM_DEPTH) {
        part.depth = job->depth - at < ROOM_DEPTH ? job->depth - at : ROOM_DEPTH;
        part.from = job->from + at * job->along;
        part.to = job->to + at * width * (int64_t)sizeof(float);
        widen_part(dtype, &part, pack);
    }
}

static void pack_lines(tn_dtype dtype, const tni_mm_pack *job, int64_t width,
                       void (*pack)(const tni_mm_pack *job))
{
    tni_mm_pack part = *job;
    for (int64_t i = 0; i < job->lines; i += width) {
        part.from = job->from + i * job->across;
        part.lines = job->lines - i < width ? job->lines - i : width;
        part.to = job->to + i / width * job->panel;
        widen_panel(dtype, &part, width, pack);
    }
}

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

static const tni_mm_set *const base = &JOIN(tni_mm_f32_, ISA).packed;

#define PACK(name, dtype)                                    \
    static void name##_a(const tni_mm_pack *job)             \
    {                                                        \
        pack_lines(dtype, job, base->rows, base->pack_a);    \
    }                                                        \
    static void name##_b(const tni_mm_pack *job)             \
    {                                                        \
        pack_lines(dtype, job, base->columns, base->pack_b); \
    }                                                        \
    const tni_mm_packs JOIN(tni_mm_##name##_, ISA) = {name##_a, name##_b};
PACK(bf16, TN_BF16)
PACK(f16, TN_F16)

/* Few rows: products are added one after the other, as in the f32 tiles. */
#define SUMS      vf
#define UNIT      PAIRS
#define X_UNIT    8
#define CHUNK     TNI_MM_DEPTH
#define TURN_OVER 0

INLINE vf add_pair(vf sum, vf low, vf high, const char *x)
{
    float pair[2];
    memcpy(pair, x, sizeof pair);
    return fma_f32(splat_f32(pair[1]), high, fma_f32(splat_f32(pair[0]), low, sum));
}

INLINE vf multiply_bf16(vf sum, vu y, const char *x)
{
    return add_pair(sum, (vf)(y << 16), (vf)(y & 0xffff0000), x);
}

INLINE vf multiply_f16(vf sum, vu y, const char *x)
{
    return add_pair(sum, widen_f16(narrow_u16(y & 0xffff)), widen_f16(narrow_u16(y >> 16)), x);
}

#define T(name) name##_bf16
#include "matmul_lowp_thin_inc.h"
#undef T
#define T(name) name##_f16
#include "matmul_lowp_thin_inc.h"

static void lay(tn_dtype dtype, const tni_mm_pack *job)
{
    for (int64_t i = 0; i < job->lines; i++) {
        const strand line = {
            (char *)(uintptr_t)(job->from + i * job->across), dtype, 2, job->along / 2, 0, false};
        float *to = (float *)(void *)(job->to + i * job->panel);
        for (int64_t p = 0; p < job->depth; p += BLOCK)
            (void)read_block_f32(&line, p, least(BLOCK, job->depth - p), to + p);
    }
}

static void finish(const tni_mm_finish *f, char *sums, int64_t sums_row, int64_t rows,
                   int64_t columns, char *out, const char *bias)
{
    finish_f32(f, (float *)(void *)sums, sums_row, rows, columns, out, bias);
}

#define THIN(name, dtype)                                                               \
    static void lay_##name(const tni_mm_pack *job)                                      \
    {                                                                                   \
        lay(dtype, job);                                                                \
    }                                                                                   \
    const tni_mm_thin_set JOIN(tni_mm_thin_##name##_, ISA) = {2 * LANES, 4, lay_##name, \
                                                              few_##name, finish};
THIN(bf16, TN_BF16)
THIN(f16, TN_F16)
