/* Sums of integers, which wrap. A part of reduce_tmpl.c. */
#ifndef TENON_BACKENDS_CPU_REDUCE_WHOLE_H
#define TENON_BACKENDS_CPU_REDUCE_WHOLE_H

#include "../shared/numbers.h"

#define SUM_BLOCK(bits)                                                   \
    static inline uint64_t sum_block_u##bits(const char *from, int64_t n) \
    {                                                                     \
        const loose_u##bits *x = (const void *)from;                      \
        uint##bits##_t sum = 0;                                           \
        for (int64_t i = 0; i < n; i++)                                   \
            sum = (uint##bits##_t)(sum + x[i]);                           \
        return sum;                                                       \
    }
SUM_BLOCK(8)
SUM_BLOCK(16)
SUM_BLOCK(32)
SUM_BLOCK(64)
#undef SUM_BLOCK

/* The sum of a strand. Only as many low bits as an element has are defined. */
static uint64_t sum_row(const strand *s, int64_t size)
{
    _Alignas(64) char room[NUMBER_BYTES];
    const int64_t most = numbers_of(s->size);
    uint64_t sum = 0;
    for (int64_t at = 0; at < size; at += most) {
        const int64_t n = size - at < most ? size - at : most;
        const char *x = read_numbers(s, at, n, room);
        switch (s->size) {
        case 1: sum += sum_block_u8(x, n); break;
        case 2: sum += sum_block_u16(x, n); break;
        case 4: sum += sum_block_u32(x, n); break;
        default: sum += sum_block_u64(x, n); break;
        }
    }
    return sum;
}

/* Adds n contiguous elements to others. */
static void add_row(char *to, const char *x, int64_t n, int32_t size)
{
    switch (size) {
    case 1: add_u8_numbers(to, x, to, n); break;
    case 2: add_u16_numbers(to, x, to, n); break;
    case 4: add_u32_numbers(to, x, to, n); break;
    default: add_u64_numbers(to, x, to, n); break;
    }
}

/* Sums n elements of out, whose inputs are adjacent in in; at most numbers_of(size). */
static void sum_columns(const strand *out, const tn_walk *walk, const char *in, int64_t n)
{
    _Alignas(64) char sums[NUMBER_BYTES];
    const int64_t count = walk->steps * walk->size;
    tn_step step;
    memset(sums, 0, (size_t)(n * out->size));
    tn_walk_seek(walk, 0, &step);
    for (int64_t row = 0, j = 0; row < count; row++) {
        add_row(sums, in + (step.offset[0] + j * walk->stride[0]) * out->size, n, out->size);
        if (++j == walk->size) {
            j = 0;
            tn_walk_next(walk, &step);
        }
    }
    move_strided(out->data, out->stride, sums, 1, n, out->size);
}

#endif
