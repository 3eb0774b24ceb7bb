/* The part of attention_merge_tmpl.c that is compiled for f32 and for f64. Parameters: those of a
 * family (shared/family_f32_inc.h). */

/* out = the sum of the parts that are read, each times its factor; `s` has out, in, other. */
static void F(merge_row)(const strand *s, const merge_share *share, int64_t size)
{
    _Alignas(64) REAL rooms[3][ROOM];
    const VECTOR a = F(splat)((REAL)share[0].factor), b = F(splat)((REAL)share[1].factor);
    if (!share[0].is_read && !share[1].is_read)
        memset(rooms[2], 0, sizeof rooms[2]);
    for (int64_t at = 0; at < size; at += ROOM) {
        const int64_t n = size - at < ROOM ? size - at : ROOM;
        const REAL *x = share[0].is_read ? F(read_block)(&s[1], at, n, rooms[0]) : rooms[2];
        const REAL *y = share[1].is_read ? F(read_block)(&s[2], at, n, rooms[1]) : rooms[2];
        if (!share[0].is_read && !share[1].is_read) {
            F(write_block)(&s[0], at, n, rooms[2]);
            continue;
        }
        REAL *to = F(block_room)(&s[0], at, n, rooms[2]);
        for (int64_t i = 0; i < n; i += WIDTH) {
            const VECTOR first = share[0].is_read ? F(load)(x + i) * a : F(load)(y + i) * b;
            const bool both = share[0].is_read && share[1].is_read;
            F(store)(to + i, both ? first + F(load)(y + i) * b : first);
        }
        F(write_block)(&s[0], at, n, to);
    }
}
