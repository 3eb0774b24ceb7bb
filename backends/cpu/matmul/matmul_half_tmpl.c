/* 16-bit elements for the f32 tiles: widened panel by panel, in memory order, and then packed as
 * f32. With few rows, elements are widened in registers and summed in the same order as in those
 * tiles. Compiled for each instruction set: the build defines ISA. */
#include "matmul_kernels.h"
#include "matmul_lowp.h"
#include "matmul_lowp_f32.h"
#include "matmul_lowp_units.h"

enum { PACK_ROWS = 8 }; /* rows along k that are read at once */
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

/* Widens the low, and the high, elements of units. */
INLINE vf widen_low(tn_dtype dtype, vu x)
{
    return dtype == TN_BF16 ? (vf)(x << 16) : widen_f16(narrow_u16(x & 0xffff));
}

INLINE vf widen_high(tn_dtype dtype, vu x)
{
    return dtype == TN_BF16 ? (vf)(x & 0xffff0000) : widen_f16(narrow_u16(x >> 16));
}

/* A whole panel of contiguous lines, from element p to `end`. */
INLINE void widen_together(tn_dtype dtype, const tni_mm_pack *job, int64_t p, int64_t end,
                           int64_t width)
{
    const char *from = job->from + p * job->along;
    float *to = (float *)(void *)job->to + p * width;
    for (; p < end; p++, from += job->along, to += width) {
        tni_mm_fetch_ahead(from, PACK_ROWS * job->along, 2 * width);
        for (int64_t i = 0; i < width; i += LANES) {
            const vh x = load_u16(from + 2 * i);
            store_f32(to + i, dtype == TN_BF16 ? widen_bf16(x) : widen_f16(x));
        }
    }
}

/* Whole squares of a panel whose lines are contiguous along k. Returns how many elements of each
 * line they have. */
INLINE int64_t widen_squares(tn_dtype dtype, const tni_mm_pack *job, int64_t width)
{
    const int64_t end = job->depth / (2 * LANES) * (2 * LANES);
    for (int64_t line = 0; line < width; line += LANES) {
        const char *from = job->from + line * job->across;
        float *to = (float *)(void *)job->to + line;
        for (int64_t p = 0; p < end; p += 2 * LANES) {
            vu x[LANES];
            UNROLLED for (int i = 0; i < LANES; i++) x[i] =
                (vu)load_i32(from + i * job->across + 2 * p);
            turn_square(x);
            UNROLLED for (int i = 0; i < LANES; i++)
            {
                store_f32(to + (p + 2 * i) * width, widen_low(dtype, x[i]));
                store_f32(to + (p + 2 * i + 1) * width, widen_high(dtype, x[i]));
            }
        }
    }
    return end;
}

/* Packs a part of lines that are contiguous, in the order of memory: a few elements of each line of
 * all whole panels, then the next. */
INLINE void pack_together(tn_dtype dtype, const tni_mm_pack *job, int64_t width)
{
    for (int64_t p = 0; p < job->depth; p += PACK_ROWS) {
        tni_mm_pack part = *job;
        for (int64_t i = 0; i + width <= job->lines; i += width) {
            part.from = job->from + i * job->across;
            part.to = job->to + i / width * job->panel;
            widen_together(dtype, &part, p, least(p + PACK_ROWS, job->depth), width);
        }
    }
}

/* Whole panels of contiguous elements are widened in registers; the rest goes through memory. */
INLINE void pack_lines(tn_dtype dtype, const tni_mm_pack *job, int64_t width,
                       void (*pack)(const tni_mm_pack *job))
{
    const bool vectors = width % LANES == 0, together = vectors && job->across == 2;
    tni_mm_pack part = *job;
    if (together)
        pack_together(dtype, job, width);
    for (int64_t i = together ? job->lines / width * width : 0; i < job->lines; i += width) {
        part = *job;
        part.from = job->from + i * job->across;
        part.lines = job->lines - i < width ? job->lines - i : width;
        part.to = job->to + i / width * job->panel;
        if (vectors && job->along == 2 && part.lines == width) {
            const int64_t done = widen_squares(dtype, &part, width);
            part.from += 2 * done;
            part.to += done * width * (int64_t)sizeof(float);
            part.depth -= done;
        }
        if (part.depth > 0)
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
