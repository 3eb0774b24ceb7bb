/* The part of rotary_tmpl.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */
#include "tenon/module/op/rotary.h"

/* The x, or the y, elements of the pairs of a row. */
INLINE strand F(part_of)(const strand *row, const tn_elementwise_op *op, bool second)
{
    bool pairs = op->kind == TN_ROTARY_PAIRS;
    strand part = *row;
    part.data = strand_at(row, second ? (pairs ? 1 : op->size / 2) : 0);
    part.stride *= pairs ? 2 : 1;
    return part;
}

/* `s` has out, in, cos, sin. */
static void F(rotary_row)(const strand *s, const tn_elementwise_op *op, int64_t width)
{
    _Alignas(64) REAL rooms[6][ROOM / 2];
    const strand out_x = F(part_of)(&s[0], op, false), out_y = F(part_of)(&s[0], op, true);
    const strand in_x = F(part_of)(&s[1], op, false), in_y = F(part_of)(&s[1], op, true);
    for (int64_t at = 0; at < op->size / 2; at += ROOM / 2) {
        int64_t n = op->size / 2 - at < ROOM / 2 ? op->size / 2 - at : ROOM / 2;
        const REAL *x = F(read_block)(&in_x, at, n, rooms[0]),
                   *y = F(read_block)(&in_y, at, n, rooms[1]);
        const REAL *cosine = F(read_block)(&s[2], at, n, rooms[2]),
                   *sine = F(read_block)(&s[3], at, n, rooms[3]);
        REAL *to_x = F(block_room)(&out_x, at, n, rooms[4]),
             *to_y = F(block_room)(&out_y, at, n, rooms[5]);
        for (int64_t i = 0; i < n; i += WIDTH) {
            VECTOR a = F(load)(x + i), b = F(load)(y + i);
            VECTOR c = F(load)(cosine + i), d = F(load)(sine + i);
            F(store)(to_x + i, a * c - b * d);
            F(store)(to_y + i, a * d + b * c);
        }
        F(write_block)(&out_x, at, n, to_x);
        F(write_block)(&out_y, at, n, to_y);
    }
    if (strand_at(&s[0], 0) != strand_at(&s[1], 0))
        move_strided(strand_at(&s[0], op->size), s[0].stride, strand_at(&s[1], op->size),
                     s[1].stride, width - op->size, s[0].size);
}
