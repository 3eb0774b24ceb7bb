/* The part of reduce_tmpl.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */
#include "tenon/module/op/reduce.h"

INLINE double F(lanes)(int32_t kind, VECTOR v)
{
    double value = identity(kind);
    if (kind == TN_REDUCE_SUM)
        return total_f64(F(wide)(v));
    for (int i = 0; i < WIDTH; i++)
        value = join(kind, value, (double)v[i]);
    return value;
}

/* Combines two vectors element by element; max and min propagate NaN. */
INLINE VECTOR F(both)(int32_t kind, VECTOR a, VECTOR b)
{
    switch (kind) {
    case TN_REDUCE_MAX: return F(choose)((a > b) | F(is_nan)(a), a, b);
    case TN_REDUCE_MIN: return F(choose)((a < b) | F(is_nan)(a), a, b);
    default: return a + b;
    }
}

/* Prefetches `next` bytes ahead. */
INLINE double F(block)(int32_t kind, const REAL *x, int64_t n, int64_t next)
{
    VECTOR a = F(splat)((REAL)identity(kind)), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
        for (int64_t line = 0; line < 4 * WIDTH * (int64_t)sizeof(REAL); line += 64)
            fetch((const char *)(x + i) + line, next);
        a = F(both)(kind, a, F(load)(x + i));
        b = F(both)(kind, b, F(load)(x + i + WIDTH));
        c = F(both)(kind, c, F(load)(x + i + 2 * WIDTH));
        d = F(both)(kind, d, F(load)(x + i + 3 * WIDTH));
    }
    for (; i < n; i += WIDTH)
        a = F(both)(kind, a, F(load)(x + i));
    return F(lanes)(kind, F(both)(kind, F(both)(kind, a, b), F(both)(kind, c, d)));
}

static double F(reduce_row)(const strand *s, int64_t size, int32_t kind)
{
    _Alignas(64) REAL room[BLOCK];
    double value = identity(kind);
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK;
        const REAL *x = F(read_block_padded)(s, at, n, room, (REAL)identity(kind));
        double more = kind == TN_REDUCE_MAX   ? F(block)(TN_REDUCE_MAX, x, n, s->next)
                      : kind == TN_REDUCE_MIN ? F(block)(TN_REDUCE_MIN, x, n, s->next)
                                              : F(block)(TN_REDUCE_SUM, x, n, s->next);
        value = join(kind, value, more);
    }
    return value;
}

/* Reduces to n <= BLOCK elements of out, whose inputs are adjacent in in. */
static void F(reduce_columns)(const loop *it, const below *all, char *in, char *out, int64_t n)
{
    _Alignas(64) REAL room[BLOCK], lanes[BLOCK];
    double total[BLOCK];
    const tn_walk *walk = &all->parts.walk;
    const tn_layout *from = &it->op->operand[TN_ELEMENTWISE_IN],
                    *to = &it->op->operand[TN_ELEMENTWISE_OUT];
    int32_t kind = all->kind;
    int64_t rows = 0, count = walk->steps * walk->size;
    tn_step step;
    for (int64_t i = 0; i < whole(n); i++)
        total[i] = identity(kind), lanes[i] = (REAL)identity(kind);
    tn_walk_seek(walk, 0, &step);
    for (int64_t row = 0, j = 0; row < count; row++) {
        strand s = strand_of(from, in + (step.offset[0] + j * walk->stride[0]) * it->size[1], 1);
        const REAL *x = F(read_block)(&s, 0, n, room);
        for (int64_t i = 0; i < n; i += WIDTH)
            F(store)(lanes + i, F(both)(kind, F(load)(lanes + i), F(load)(x + i)));
        if (++rows == FLUSH || row + 1 == count) {
            for (int64_t i = 0; i < n; i++)
                total[i] = join(kind, total[i], (double)lanes[i]), lanes[i] = (REAL)identity(kind);
            rows = 0;
        }
        if (++j == walk->size) {
            j = 0;
            tn_walk_next(walk, &step);
        }
    }
    strand y = strand_of(to, out, it->walk.stride[0]);
    for (int64_t i = 0; i < whole(n); i++)
        lanes[i] = i < n ? (REAL)finished(all, total[i]) : 0;
    F(write_block)(&y, 0, n, lanes);
}
