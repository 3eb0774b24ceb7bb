/* Splits rows into pieces that are computed as they are read: whole pairs, in place if they are
 * contiguous; and a tail of less than GROUP elements, in a buffer. */
#ifndef TENON_BACKENDS_CPU_PIECES_H
#define TENON_BACKENDS_CPU_PIECES_H

#include "block.h"

/* Number of elements of the next piece: at most BLOCK. */
INLINE int64_t piece_of(int64_t left)
{
    return left >= BLOCK ? BLOCK : left >= GROUP ? left / GROUP * GROUP : left;
}

INLINE bool is_piece(const strand *s, int64_t n)
{
    return s->stride == 1 && n >= GROUP;
}

/* The dtype for reading a piece if order does not matter. The tail is not split, since it may end
 * between two positions. */
INLINE tn_dtype form_of(tn_dtype dtype, int64_t n)
{
    return dtype == TN_BF16 && n >= GROUP ? SPLIT_BF16 : dtype;
}

/* Returns a piece in memory order, in place or in `raw`: contiguous, and with zeros up to GROUP. */
static inline const char *gather_piece(const strand *s, int64_t at, int64_t n, char *raw)
{
    const char *from = strand_at(s, at);
    if (is_piece(s, n))
        return from;
    if (s->stride == 1) {
        copy_padded(raw, from, n * s->size, GROUP * s->size);
        return raw;
    }
    move_strided(raw, 1, from, s->stride, n, s->size);
    if (n < GROUP)
        memset(raw + n * s->size, 0, (size_t)((GROUP - n) * s->size));
    return raw;
}

/* Returns a piece as numbers, with zeros up to GROUP; for weights. */
static inline const float *read_piece_f32(const strand *s, int64_t at, int64_t n, float *room)
{
    _Alignas(64) char raw[GROUP * 8];
    if (n >= GROUP)
        return read_block_f32(s, at, n, room);
    const pair_f32 v = load_pair_f32(s->dtype, gather_piece(s, at, n, raw));
    store_f32(room, v.a);
    store_f32(room + LANES, v.b);
    return room;
}

static inline const double *read_piece_f64(const strand *s, int64_t at, int64_t n, double *room)
{
    return (const double *)(const void *)gather_piece(s, at, n, (char *)room);
}

/* Whether pairs may be written directly to a piece's destination with non-temporal stores. */
INLINE bool is_streamed(const strand *s, int64_t at, int64_t n)
{
    return is_piece(s, n) && may_stream(s, at);
}

/* Returns where pairs of a piece may be written: its destination, or `raw`, to be copied with
 * put_back. */
INLINE char *piece_room(const strand *s, int64_t at, int64_t n, char *raw)
{
    return is_piece(s, n) && s->stream == may_stream(s, at) ? strand_at(s, at) : raw;
}

#endif
