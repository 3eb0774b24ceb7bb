/* Softmax and log-softmax, a row at a time: the maximum, the sum of exponentials, the quotients.
 * Sums of a block are made in lanes, those of blocks in f64; a row's result depends only on that
 * row. */
#include "../shared/loop.h"
#include "../shared/pieces.h"
#include "../shared/vector_math.h"

/* Exponentials of rows that fit are kept between the passes; those of longer rows are kept in y if
 * it has the computing type, is contiguous and is not streamed; else they are computed again. */
#define ROW_ROOM(real) ((int64_t)(16384 / sizeof(real)))

/* The greatest of the bits of f16 or bf16, compared as integers after inverting the bits in
 * `flip`. */
static int16_t max_bits(const strand *x, int64_t size, int16_t flip)
{
    static const int16_t places[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                     22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    _Alignas(64) char raw[BLOCK * 2];
    const vs least = (vs){0} + INT16_MIN;
    vs most = least;
    for (int64_t at = 0, n; at < size; at += n) {
        n = piece_of(size - at);
        const char *from = gather_piece(x, at, n, raw);
        vs some = (vs)load_u32((const char *)places) < (int16_t)n;
        for (int64_t i = 0; i < n; i += GROUP) {
            vs v = (vs)load_u32(from + i * 2);
            v = flip ? v ^ flip : v;
            most = greater_i16(most, n < GROUP ? (v & some) | (least & ~some) : v);
        }
    }
    return most_i16(most) ^ flip;
}

/* Positive numbers are ordered like their bits, negative ones in reverse. A NaN is greater than any
 * number, or less. */
static float max_halves(const strand *x, int64_t size)
{
    int16_t bits = max_bits(x, size, 0);
    const vh max = (vh){0} + (uint16_t)(bits >= 0 ? bits : max_bits(x, size, INT16_MAX));
    return (x->dtype == TN_BF16 ? widen_bf16(max) : widen_f16(max))[0];
}

/* Shares are inexact anyway, so ties between two bf16 numbers may be rounded either way: here up. A
 * NaN is either from x, whose bits are preserved, or the processor's default. */
INLINE void save_share_f32(tn_dtype dtype, char *to, pair_f32 v, float factor, bool stream)
{
    v.a *= factor;
    v.b *= factor;
    if (dtype == SPLIT_BF16)
        save_vector(to, split_high((vu)v.a + 0x8000, (vu)v.b + 0x8000), stream);
    else
        save_pair_f32(dtype, to, v, stream);
}

INLINE void save_share_f64(tn_dtype dtype, char *to, pair_f64 v, double factor, bool stream)
{
    save_pair_f64(dtype, to, (pair_f64){v.a * factor, v.b * factor}, stream);
}

#include "../shared/family_f32_inc.h"

#include "softmax_inc.h"

#include "../shared/family_end_inc.h"

#include "../shared/family_f64_inc.h"

#include "softmax_inc.h"

#include "../shared/family_end_inc.h"

static void softmax_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    const tn_layout *out = &it->op->operand[TN_ELEMENTWISE_OUT],
                    *in = &it->op->operand[TN_ELEMENTWISE_IN];
    int64_t size = TN_PARAMS(it->op, elementwise)->size;
    bool log_wanted = it->op->uses & TN_ELEMENTWISE_USES_LOG;
    for (int64_t row = 0; row < n; row++) {
        char *to = data[0] + row * it->walk.stride[0] * it->size[0];
        char *from = data[1] + row * it->walk.stride[1] * it->size[1];
        strand y = strand_out(it, to, out->stride[out->rank - 1]);
        strand x = strand_row(in, from, size, it->walk.stride[1] * it->size[1]);
        if (in->dtype == TN_F64)
            softmax_row_f64(&x, &y, size, log_wanted);
        else
            softmax_row_f32(&x, &y, size, log_wanted);
    }
}

ISA_KERNEL(softmax)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN};
    loop it = {.body = softmax_body};
    (void)err;
    loop_prepare(&it, run, operands, 2, 1, TN_PARAMS(run->op, elementwise)->size);
    loop_run(&it);
    return TN_OK;
}
