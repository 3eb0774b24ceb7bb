/* Casts between f32, f16, bf16, i8 and u8 in any pair, from them to i32 and f64, and from i32 and
 * f64 to f32: the casts that can go through f32 without a second rounding. */
#include "../shared/loop.h"

static void narrow_f64(const strand *x, const strand *y, int64_t at, int64_t n)
{
    _Alignas(64) double room[BLOCK];
    _Alignas(64) float other[BLOCK];
    const double *from = read_block_f64(x, at, n, room);
    float *to = block_room_f32(y, at, n, other);
    for (int64_t i = 0; i < n; i += DOUBLES)
        store_few(to + i, __builtin_convertvector(load_f64(from + i), vg));
    write_block_f32(y, at, n, to);
}

static void widen_to_f64(const strand *x, const strand *y, int64_t at, int64_t n)
{
    _Alignas(64) float room[BLOCK];
    _Alignas(64) double other[BLOCK];
    const float *from = read_block_f32(x, at, n, room);
    double *to = block_room_f64(y, at, n, other);
    for (int64_t i = 0; i < n; i += DOUBLES)
        store_f64(to + i, __builtin_convertvector(load_few(from + i), vd));
    write_block_f64(y, at, n, to);
}

static void cast_body(const loop *it, char *const *data, int64_t first, int64_t n)
{
    (void)first;
    const tn_layout *out = &it->op->operand[TN_ELEMENTWISE_OUT],
                    *in = &it->op->operand[TN_ELEMENTWISE_IN];
    strand y = strand_out(it, data[0], it->walk.stride[0]);
    strand x = strand_in(it, in, data[1], it->walk.stride[1]);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        _Alignas(64) float room[BLOCK];
        if (in->dtype == TN_F64)
            narrow_f64(&x, &y, at, m);
        else if (out->dtype == TN_F64)
            widen_to_f64(&x, &y, at, m);
        else
            write_block_fetching(&y, at, m,
                                 read_block_f32(&x, at, m, block_room_f32(&y, at, m, room)),
                                 in->dtype == TN_F32 ? x.next : 0);
    }
}

ISA_KERNEL(cast)
{
    static const int32_t operands[] = {TN_ELEMENTWISE_OUT, TN_ELEMENTWISE_IN};
    loop it = {.body = cast_body};
    (void)err;
    loop_prepare(&it, run, operands, 2, 0, 1);
    loop_run(&it);
    return TN_OK;
}
