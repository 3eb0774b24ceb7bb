/* Converts elements of any dtype and stride to blocks of f32, or of f64: the data that a kernel
 * computes with is always contiguous and padded to whole vectors. If an operand already has this
 * form, a block is the operand itself. */
#ifndef TENON_BACKENDS_CPU_BLOCK_H
#define TENON_BACKENDS_CPU_BLOCK_H

#include "pairs.h"

enum { BLOCK = 1024 }; /* elements; a multiple of GROUP */

/* A row of an operand. */
typedef struct strand {
    char *data;
    tn_dtype dtype;
    int32_t size;   /* bytes of an element */
    int64_t stride; /* in elements */
    int64_t next;   /* prefetch distance in bytes, to the next row or block; or 0 */
    bool stream;    /* written with non-temporal stores */
} strand;

INLINE strand strand_of(const tn_layout *layout, char *data, int64_t stride)
{
    return (strand){data, layout->dtype, (int32_t)(layout->dtype >> 8 & 255) / 8, stride, 0, false};
}

INLINE char *strand_at(const strand *s, int64_t at)
{
    return s->data + at * s->stride * s->size;
}

/* Whether `n` elements may be used in place. */
INLINE bool is_block(const strand *s, int64_t n)
{
    return s->stride == 1 && n % LANES == 0;
}

INLINE int64_t whole(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

#define MOVE(type, to, to_stride, from, from_stride, n)             \
    for (int64_t i_ = 0; i_ < (n); i_++)                            \
    memcpy((char *)(to) + i_ * (to_stride) * (int64_t)sizeof(type), \
           (const char *)(from) + i_ * (from_stride) * (int64_t)sizeof(type), sizeof(type))

/* Moves elements that are `size` bytes wide. */
static inline void move_strided(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                int64_t n, int32_t size)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1: MOVE(uint8_t, to, to_stride, from, from_stride, n); break;
    case 2: MOVE(uint16_t, to, to_stride, from, from_stride, n); break;
    case 4: MOVE(uint32_t, to, to_stride, from, from_stride, n); break;
    case 8: MOVE(uint64_t, to, to_stride, from, from_stride, n); break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * size, from + i * from_stride * size, (size_t)size);
    }
}

/* Copies with non-temporal stores, except for incomplete cache lines. */
static inline void stream_bytes(char *to, const char *from, int64_t bytes)
{
    int64_t head = (int64_t)(-(uintptr_t)to & 63), i = head < bytes ? head : bytes;
    memcpy(to, from, (size_t)i);
    for (; i + 64 <= bytes; i += 64)
        stream_line(to + i, from + i);
    memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* Whether vectors may be written from element `at` on with non-temporal stores. */
INLINE bool may_stream(const strand *s, int64_t at)
{
    return s->stream && (uintptr_t)strand_at(s, at) % sizeof(vf) == 0;
}

/* Returns `n` <= BLOCK contiguous elements: in place, or in `room`, with zeros up to a whole
 * vector. */
static inline const void *gather(const strand *s, int64_t at, int64_t n, void *room)
{
    const char *from = strand_at(s, at);
    if (is_block(s, n))
        return from;
    if (s->stride == 1 && n < GROUP && s->size > 1) {
        copy_padded(room, from, n * s->size, whole(n) * s->size);
        return room;
    }
    move_strided(room, 1, from, s->stride, n, s->size);
    memset((char *)room + n * s->size, 0, (size_t)((whole(n) - n) * s->size));
    return room;
}

#define WIDEN(expression)                    \
    for (int64_t i = 0; i < n; i += LANES) { \
        fetch(from + i * size, next);        \
        store_f32(room + i, expression);     \
    }

/* Returns elements at..at+n as f32; `room` must have space for BLOCK of them. */
static inline const float *read_block_f32(const strand *s, int64_t at, int64_t n, float *room)
{
    _Alignas(64) char raw[BLOCK * 4];
    if (s->dtype == TN_F32)
        return gather(s, at, n, room);
    const char *from = gather(s, at, n, raw);
    const int64_t size = s->size, next = s->next;
    switch (s->dtype) {
    case TN_BF16: WIDEN(widen_bf16(load_u16(from + i * 2))); break;
    case TN_F16: WIDEN(widen_f16(load_u16(from + i * 2))); break;
    case TN_I8: WIDEN(__builtin_convertvector(widen_i8(load_i8(from + i)), vf)); break;
    case TN_U8: WIDEN(__builtin_convertvector(widen_u8(load_u8(from + i)), vf)); break;
    case TN_I32: WIDEN(__builtin_convertvector(load_i32(from + i * 4), vf)); break;
    default: break;
    }
    return room;
}

/* Returns where elements at..at+n may be written as f32 before write_block_f32. */
static inline float *block_room_f32(const strand *s, int64_t at, int64_t n, float *room)
{
    return s->dtype == TN_F32 && is_block(s, n) && !s->stream ? (float *)(void *)strand_at(s, at)
                                                              : room;
}

/* Writes contiguous elements to their destination. */
static inline void put_back(const strand *s, int64_t at, int64_t n, const void *from)
{
    char *target = strand_at(s, at);
    if (s->stream)
        stream_bytes(target, from, n * s->size);
    else
        move_strided(target, s->stride, from, 1, n, s->size);
}

/* Narrows from f32 and prefetches `next` bytes ahead; the last vector may be half of a pair. */
INLINE void narrow_block(tn_dtype dtype, char *to, const float *from, int64_t n, int64_t next,
                         bool stream)
{
    const int32_t size = size_of_dtype(dtype);
    char last[sizeof(pair_f32)];
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        fetch_pair(from + i, next, 4);
        save_pair_f32(dtype, to + i * size, load_pair_f32(TN_F32, (const char *)(from + i)),
                      stream);
    }
    for (; i < n; i += LANES) {
        vf v = load_f32(from + i);
        save_pair_f32(dtype, last, (pair_f32){v, v}, false);
        memcpy(to + i * size, last, (size_t)(LANES * size));
    }
}

#define NARROW(store, size, expression)    \
    for (int64_t i = 0; i < n; i += LANES) \
    store(to + i * (size), expression)

/* Writes elements at..at+n from f32, of which whole vectors may be read; prefetches `next` bytes
 * ahead. */
static inline void write_block_fetching(const strand *s, int64_t at, int64_t n, const float *from,
                                        int64_t next)
{
    _Alignas(64) char raw[BLOCK * 4];
    const bool is_float = (s->dtype & 255) >= TN_DTYPE_CODE_FLOAT;
    const bool stream = is_float && is_block(s, n) && may_stream(s, at);
    char *target = strand_at(s, at), *to = is_block(s, n) && s->stream == stream ? target : raw;
    if (target == (const char *)(const void *)from)
        return;
    switch (s->dtype) {
    case TN_BF16: narrow_block(TN_BF16, to, from, n, next, stream); break;
    case TN_F16: narrow_block(TN_F16, to, from, n, next, stream); break;
    case TN_I8: NARROW(store_u8, 1, narrow_u8(clamp_to_int(load_f32(from + i), -128, 127))); break;
    case TN_U8: NARROW(store_u8, 1, narrow_u8(clamp_to_int(load_f32(from + i), 0, 255))); break;
    case TN_I32: NARROW(store_i32, 4, cut_to_int(load_f32(from + i))); break;
    default:
        if (stream)
            narrow_block(TN_F32, to, from, n, next, true);
        else
            put_back(s, at, n, from);
        return;
    }
    if (to == raw)
        put_back(s, at, n, raw);
}

static inline void write_block_f32(const strand *s, int64_t at, int64_t n, const float *from)
{
    write_block_fetching(s, at, n, from, 0);
}

/* The same for f64; only f64 operands are computed in f64. */
static inline const double *read_block_f64(const strand *s, int64_t at, int64_t n, double *room)
{
    return gather(s, at, n, room);
}

static inline double *block_room_f64(const strand *s, int64_t at, int64_t n, double *room)
{
    return is_block(s, n) && !s->stream ? (double *)(void *)strand_at(s, at) : room;
}

static inline void write_block_f64(const strand *s, int64_t at, int64_t n, const double *from)
{
    char *target = strand_at(s, at);
    if (target != (const char *)(const void *)from)
        put_back(s, at, n, from);
}

/* Returns elements at..at+n, padded with `value` up to a whole vector. */
#define READ_PADDED(real, name, width)                                                         \
    static inline const real *read_block_padded_##name(const strand *s, int64_t at, int64_t n, \
                                                       real *room, real value)                 \
    {                                                                                          \
        const real *block = read_block_##name(s, at, n, room);                                 \
        for (int64_t i = n / width * width; i < n && block == room; i += width)                \
            store_##name(room + i, first_lanes_##name(load_##name(room + i), n - i, value));   \
        return block;                                                                          \
    }
READ_PADDED(float, f32, LANES)
READ_PADDED(double, f64, DOUBLES)
#undef READ_PADDED

#endif
