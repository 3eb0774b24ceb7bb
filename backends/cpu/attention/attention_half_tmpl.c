/* 16-bit floats for the kernels of f32: rows are widened as they are read, and narrowed as they are
 * written. Compiled for each instruction set: the build defines ISA. */
#include "../shared/block.h"
#include "attention_low.h"
#include "attention_sets.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

static const tni_at_set *const base = &JOIN(tni_at_f32_, ISA);
static const tni_at_back_set *const base_back = &JOIN(tni_at_back_f32_, ISA);

INLINE vf widen(const tn_dtype dtype, const char *from)
{
    return dtype == TN_BF16 ? widen_bf16(load_u16(from)) : widen_f16(load_u16(from));
}

/* Widens a row of `size` elements, at most TNI_AT_LOW_SIZE. */
INLINE void widen_row(const tn_dtype dtype, const char *from, int64_t step, int64_t size, float *to)
{
    const int64_t whole_ones = step == 2 ? size / LANES * LANES : 0;
    for (int64_t i = 0; i < whole_ones; i += LANES)
        store_f32(to + i, widen(dtype, from + 2 * i));
    if (whole_ones < size) {
        const strand row = {(char *)(uintptr_t)from, dtype, 2, step / 2, 0, false};
        (void)read_block_f32(&row, whole_ones, size - whole_ones, to + whole_ones);
    }
}

/* Widens rows into consecutive memory and stores their addresses in out_at. Returns the end of
 * them. */
INLINE float *widen_rows(const tn_dtype dtype, const char *const *from, int64_t step, int64_t size,
                         int64_t rows, float *to, const char **out_at)
{
    for (int64_t r = 0; r < rows; r++, to += whole(size)) {
        widen_row(dtype, from[r], step, size, to);
        out_at[r] = (const char *)to;
    }
    return to;
}

INLINE void pack_rows(const tn_dtype dtype, const char *const *from, int64_t step, int64_t size,
                      int64_t rows, char *to)
{
    _Alignas(64) float room[TNI_AT_LOW_SIZE];
    const char *at = (const char *)room;
    for (int64_t r = 0; r < rows; r++) {
        widen_row(dtype, from[r], step, size, room);
        base->pack_rows(&at, sizeof(float), size, 1, to + r * base->q_row(size));
    }
}

INLINE bool pack(const tn_dtype dtype, const tni_at_pack *job)
{
    const char *k[TNI_AT_KEYS_MOST], *v[TNI_AT_KEYS_MOST];
    tni_at_pack wide = *job;
    float *room = (float *)(void *)(job->room + base->room);
    room = widen_rows(dtype, job->k, job->k_step, job->size, job->keys, room, k);
    (void)widen_rows(dtype, job->v, job->v_step, job->value_size, job->keys, room, v);
    wide.k = k;
    wide.v = v;
    wide.k_step = wide.v_step = sizeof(float);
    return base->pack(&wide);
}

INLINE void narrow_row(const tn_dtype dtype, const float *from, int64_t size, char *to,
                       int64_t step)
{
    const strand row = {to, dtype, 2, step / 2, 0, false};
    write_block_f32(&row, 0, size, from);
}

/* Finishes one row at a time through a buffer, except for an out of f32. */
static void finish(tn_dtype dtype, const tni_at_step *s)
{
    _Alignas(64) float room[TNI_AT_LOW_SIZE];
    const tni_at_problem *p = s->problem;
    tni_at_problem wide = *p;
    tni_at_step row = *s;
    if (p->out.dtype == TN_F32) {
        base->finish(s);
        return;
    }
    wide.out = (tni_at_side){.data = (char *)room, .dtype = TN_F32, .size = 4, .element = 4};
    row.problem = &wide;
    row.rows = 1;
    for (int64_t r = 0; r < s->rows; r++, row.row++) {
        base->finish(&row);
        narrow_row(dtype, room, p->at->value_size, tni_at_row(p, s->unit, &p->out, row.row),
                   p->out.element);
        row.state.most = (float *)row.state.most + 1;
        row.state.sums = (float *)row.state.sums + base->lanes;
        row.state.values = (float *)row.state.values + row.state.value_row;
    }
}

/* `transpose_rows` transposes the k rows of a pack, `lines` writes its v rows as lines; both widen
 * through job->room. */
INLINE void transpose_rows(const tn_dtype dtype, const tni_at_pack *job)
{
    const char *rows[TNI_AT_KEYS_MOST];
    tni_at_pack wide = *job;
    (void)widen_rows(dtype, job->k, job->k_step, job->size, job->keys, (float *)(void *)job->room,
                     rows);
    wide.k = rows;
    wide.k_step = sizeof(float);
    base_back->transpose(&wide);
}

INLINE bool lines(const tn_dtype dtype, const tni_at_pack *job)
{
    const char *rows[TNI_AT_KEYS_MOST];
    tni_at_pack wide = *job;
    (void)widen_rows(dtype, job->v, job->v_step, job->value_size, job->keys,
                     (float *)(void *)job->room, rows);
    wide.v = rows;
    wide.v_step = sizeof(float);
    return base_back->lines(&wide);
}

static void begin_row(tn_dtype dtype, const tni_at_back_begin *job, void *out_less, void *out_delta)
{
    _Alignas(64) float out[TNI_AT_LOW_SIZE], dout[TNI_AT_LOW_SIZE];
    tni_at_back_begin wide = *job;
    widen_row(dtype, job->out, job->out_step, job->size, out);
    widen_row(dtype, job->dout, job->dout_step, job->size, dout);
    wide.out = (const char *)out;
    wide.dout = (const char *)dout;
    wide.out_step = wide.dout_step = sizeof(float);
    base_back->begin_row(&wide, out_less, out_delta);
}

static void write_row(tn_dtype dtype, const void *sums, double by, int64_t size, char *to,
                      int64_t step)
{
    _Alignas(64) float room[TNI_AT_LOW_SIZE];
    base_back->write(sums, by, size, (char *)room, sizeof(float));
    narrow_row(dtype, room, size, to, step);
}

#define HALF(name, number)                                                                      \
    static void pack_rows_##name(const char *const *from, int64_t step, int64_t size,           \
                                 int64_t rows, char *to)                                        \
    {                                                                                           \
        pack_rows(number, from, step, size, rows, to);                                          \
    }                                                                                           \
    static bool pack_##name(const tni_at_pack *job)                                             \
    {                                                                                           \
        return pack(number, job);                                                               \
    }                                                                                           \
    static void finish_##name(const tni_at_step *s)                                             \
    {                                                                                           \
        finish(number, s);                                                                      \
    }                                                                                           \
    static void widen_row_##name(const char *from, int64_t step, int64_t size, float *to)       \
    {                                                                                           \
        widen_row(number, from, step, size, to);                                                \
    }                                                                                           \
    static void narrow_row_##name(const float *from, int64_t size, char *to, int64_t step)      \
    {                                                                                           \
        narrow_row(number, from, size, to, step);                                               \
    }                                                                                           \
    static void transpose_##name(const tni_at_pack *job)                                        \
    {                                                                                           \
        transpose_rows(number, job);                                                            \
    }                                                                                           \
    static bool lines_##name(const tni_at_pack *job)                                            \
    {                                                                                           \
        return lines(number, job);                                                              \
    }                                                                                           \
    static void begin_row_##name(const tni_at_back_begin *job, void *out_less, void *out_delta) \
    {                                                                                           \
        begin_row(number, job, out_less, out_delta);                                            \
    }                                                                                           \
    static void write_##name(const void *sums, double by, int64_t size, char *to, int64_t step) \
    {                                                                                           \
        write_row(number, sums, by, size, to, step);                                            \
    }                                                                                           \
    const tni_at_half JOIN(tni_at_half_##name##_, ISA) = {                                      \
        pack_rows_##name, pack_##name,  finish_##name,    widen_row_##name, narrow_row_##name,  \
        transpose_##name, lines_##name, begin_row_##name, write_##name};
HALF(bf16, TN_BF16)
HALF(f16, TN_F16)
