/* Operators of integers and complex numbers on contiguous elements of any alignment. Integers wrap, so
 * signed ones are computed as unsigned ones. */
#ifndef TENON_BACKENDS_CPU_NUMBERS_H
#define TENON_BACKENDS_CPU_NUMBERS_H

#include "block.h"

typedef uint8_t loose_u8 __attribute__((may_alias));
typedef uint16_t loose_u16 __attribute__((aligned(1), may_alias));
typedef uint32_t loose_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t loose_u64 __attribute__((aligned(1), may_alias));

enum { NUMBER_BYTES = 8 * BLOCK }; /* of a block of such elements */

/* The elements of a block that are `size` bytes wide. */
INLINE int64_t numbers_of(int32_t size)
{
    return NUMBER_BYTES / size;
}

typedef struct wide_number {
    uint64_t halves[2];
} wide_number;

/* Moves elements of any size. move_strided has no case for 16 bytes: where sizes are not constants, compilers
 * would warn that its callers' smaller arrays cannot hold them. */
static inline void move_numbers(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                int64_t n, int32_t size)
{
    if (size == (int32_t)sizeof(wide_number))
        MOVE(wide_number, to, to_stride, from, from_stride, n);
    else
        move_strided(to, to_stride, from, from_stride, n, size);
}

/* Returns `n` contiguous elements: in place, or in `room`, which has NUMBER_BYTES. */
static inline const char *read_numbers(const strand *s, int64_t at, int64_t n, char *room)
{
    if (s->stride == 1)
        return strand_at(s, at);
    move_numbers(room, 1, strand_at(s, at), s->stride, n, s->size);
    return room;
}

/* Writes contiguous elements to their destination. */
static inline void write_numbers(const strand *s, int64_t at, int64_t n, const char *from)
{
    if (s->stream)
        stream_bytes(strand_at(s, at), from, n * s->size);
    else
        move_numbers(strand_at(s, at), s->stride, from, 1, n, s->size);
}

/* Defines a function of two blocks of n elements; `out` may be `in`. */
#define NUMBERS(name, type, statement)                                                        \
    static inline void name##_numbers(const char *in, const char *with, char *out, int64_t n) \
    {                                                                                         \
        const type *x = (const void *)in, *y = (const void *)with;                            \
        type *z = (void *)out;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                     \
            statement;                                                                        \
        }                                                                                     \
    }

/* Products of narrow numbers are computed in unsigned types that they are not promoted from. */
#define WHOLE_NUMBERS(bits, wide)                                                         \
    NUMBERS(add_u##bits, loose_u##bits, z[i] = (uint##bits##_t)((wide)x[i] + (wide)y[i])) \
    NUMBERS(sub_u##bits, loose_u##bits, z[i] = (uint##bits##_t)((wide)x[i] - (wide)y[i])) \
    NUMBERS(mul_u##bits, loose_u##bits, z[i] = (uint##bits##_t)((wide)x[i] * (wide)y[i]))
WHOLE_NUMBERS(8, uint32_t)
WHOLE_NUMBERS(16, uint32_t)
WHOLE_NUMBERS(32, uint32_t)
WHOLE_NUMBERS(64, uint64_t)
#undef WHOLE_NUMBERS

#define COMPLEX_NUMBERS(name, type, real)                                                   \
    NUMBERS(add_##name, type, z[2 * i] = x[2 * i] + y[2 * i];                               \
            z[2 * i + 1] = x[2 * i + 1] + y[2 * i + 1])                                     \
    NUMBERS(sub_##name, type, z[2 * i] = x[2 * i] - y[2 * i];                               \
            z[2 * i + 1] = x[2 * i + 1] - y[2 * i + 1])                                     \
    NUMBERS(mul_##name, type, const real a = x[2 * i]; const real b = x[2 * i + 1];         \
            const real c = y[2 * i]; const real d = y[2 * i + 1]; z[2 * i] = a * c - b * d; \
            z[2 * i + 1] = a * d + b * c)
COMPLEX_NUMBERS(c64, loose_f32, float)
COMPLEX_NUMBERS(c128, loose_f64, double)
#undef COMPLEX_NUMBERS
#undef NUMBERS

typedef void numbers_function(const char *in, const char *with, char *out, int64_t n);

#endif
