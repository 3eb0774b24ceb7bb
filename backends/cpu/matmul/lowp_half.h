/* Elements of 16 bits, packed as f32 for the tiles of f32: they are widened panel by panel, the way that they
 * lie, and packed as f32 is. Before it: ISA. */
#include "../kernels/block.h"
#include "kernels.h"
#include "lowp.h"

enum { ROOM_LINES = 32 };

/* `lines` lines of `count` elements that are `along` apart: from each to the next `across` bytes. */
static void widen_lines(tn_dtype dtype, const char *from, int64_t across, int64_t along,
                        int64_t lines, int64_t count, float *room)
{
    strand line = {(char *)(uintptr_t)from, dtype, 2, along / 2, 0, false};
    for (int64_t i = 0; i < lines; i++, line.data += across)
        (void)take_f32(&line, 0, count, room + i * whole(count));
}

/* A panel, or a part of one. */
static void pack_panel(tn_dtype dtype, const tni_mm_pack *job, void (*pack)(const tni_mm_pack *job))
{
    _Alignas(64) float room[ROOM_LINES * TNI_MM_DEPTH];
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

static void pack_lines(tn_dtype dtype, const tni_mm_pack *job, int64_t width,
                       void (*pack)(const tni_mm_pack *job))
{
    tni_mm_pack part = *job;
    for (int64_t i = 0; i < job->lines; i += width) {
        part.from = job->from + i * job->across;
        part.lines = job->lines - i < width ? job->lines - i : width;
        part.to = job->to + i / width * job->panel;
        pack_panel(dtype, &part, pack);
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
