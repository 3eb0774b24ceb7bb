/* The part of softmax_tmpl.c that is compiled for f32 and for f64. Parameters: those of a family
 * (shared/family_f32_inc.h). */

static REAL F(row_max)(const strand *x, int64_t size)
{
    _Alignas(64) char raw[BLOCK * sizeof(REAL)];
    const REAL least = (REAL)-INFINITY;
    PAIR most = {F(splat)(least), F(splat)(least)};
    for (int64_t at = 0, n; at < size; at += n) {
        n = piece_of(size - at);
        const char *from = gather_piece(x, at, n, raw);
        for (int64_t i = 0; i < n; i += 2 * WIDTH) {
            PAIR v = F(load_pair)(0, from + i * (int64_t)sizeof(REAL));
            v = n - i < 2 * WIDTH ? F(first)(v, n - i, least) : v;
            most.a = F(greater)(v.a, most.a);
            most.b = F(greater)(v.b, most.b);
        }
    }
    return F(most)(F(greater)(most.a, most.b));
}

/* The exponentials of a row, between the passes. */
typedef struct F(shares) {
    const strand *x, *y;
    int64_t size;
    REAL max;
    REAL *room; /* ROW_ROOM elements */
    bool split; /* x and y are both bf16 */
    bool again; /* not kept: computed again */
} F(shares);
#define SHARES F(shares)

/* Where the exponentials of a piece are kept, or computed again. The tail uses `room` if the others
 * are in y. */
static REAL *F(kept)(const SHARES *it, int64_t at, int64_t n)
{
    if (it->size <= ROW_ROOM(REAL))
        return it->room + at;
    return it->again || n < GROUP ? it->room : (REAL *)(void *)strand_at(it->y, at);
}

INLINE tn_dtype F(form)(const SHARES *it, const strand *s, int64_t n)
{
    return it->split ? form_of(s->dtype, n) : s->dtype;
}

/* Writes exp(x - max) to `to`; returns their sum. */
INLINE vd F(exp_piece)(tn_dtype dtype, const char *from, int64_t n, REAL max, REAL *to,
                       int64_t next)
{
    const int32_t each = size_of_dtype(dtype);
    PAIR sum = {{0}, {0}};
    for (int64_t i = 0; i < n; i += 2 * WIDTH) {
        PAIR v = F(load_pair)(dtype, from + i * each);
        v = n - i < 2 * WIDTH ? F(first)(v, n - i, (REAL)-INFINITY) : v;
        fetch_pair(from + i * each, next, each);
        v.a = F(exp_below)(v.a - max);
        v.b = F(exp_below)(v.b - max);
        sum.a += v.a;
        sum.b += v.b;
        F(store)(to + i, v.a);
        F(store)(to + i + WIDTH, v.b);
    }
    return F(wide)(sum.a + sum.b);
}

static vd F(exp_of)(const SHARES *it, int64_t at, int64_t n, char *raw)
{
    return FOR_FORM(F(form)(it, it->x, n), F(exp_piece), gather_piece(it->x, at, n, raw), n,
                    it->max, F(kept)(it, at, n), it->x->next);
}

static double F(row_exp)(const SHARES *it)
{
    _Alignas(64) char raw[BLOCK * sizeof(REAL)];
    vd sum = {0};
    for (int64_t at = 0, n; at < it->size; at += n) {
        n = piece_of(it->size - at);
        sum += F(exp_of)(it, at, n, raw);
    }
    return total_f64(sum);
}

INLINE int F(share_piece)(tn_dtype dtype, const REAL *from, char *to, int64_t n, REAL factor,
                          bool stream)
{
    for (int64_t i = 0; i < n; i += 2 * WIDTH) {
        PAIR v = {F(load)(from + i), F(load)(from + i + WIDTH)};
        F(save_share)(dtype, to + i * size_of_dtype(dtype), v, factor, stream);
    }
    return 0;
}

static void F(row_share)(const SHARES *it, REAL factor)
{
    _Alignas(64) char raw[BLOCK * sizeof(REAL)];
    const strand *y = it->y;
    for (int64_t at = 0, n; at < it->size; at += n) {
        n = piece_of(it->size - at);
        const REAL *from = F(kept)(it, at, n);
        char *to = piece_room(y, at, n, raw);
        if (it->again)
            (void)F(exp_of)(it, at, n, raw);
        (void)FOR_FORM(F(form)(it, y, n), F(share_piece), from, to, n, factor,
                       is_streamed(y, at, n));
        if (to == raw)
            put_back(y, at, n, raw);
    }
}

static void F(row_shift)(const strand *x, const strand *y, int64_t size, REAL max, REAL less)
{
    _Alignas(64) REAL room[ROOM / 2], other[ROOM / 2];
    for (int64_t at = 0; at < size; at += ROOM / 2) {
        int64_t n = size - at < ROOM / 2 ? size - at : ROOM / 2;
        const REAL *from = F(read_block)(x, at, n, room);
        REAL *to = F(block_room)(y, at, n, other);
        for (int64_t i = 0; i < n; i += WIDTH)
            F(store)(to + i, (F(load)(from + i) - max) - less);
        F(write_block)(y, at, n, to);
    }
}

static void F(softmax_row)(const strand *x, const strand *y, int64_t size, bool log_wanted)
{
    _Alignas(64) REAL room[ROW_ROOM(REAL)];
    const bool in_y = y->size == sizeof(REAL) && y->stride == 1 && !y->stream;
    const SHARES it = {.x = x,
                       .y = y,
                       .split = x->dtype == TN_BF16 && y->dtype == TN_BF16,
                       .size = size,
                       .max = x->size == 2 ? (REAL)max_halves(x, size) : F(row_max)(x, size),
                       .room = room,
                       .again = size > ROW_ROOM(REAL) && (log_wanted || !in_y)};
    double sum = F(row_exp)(&it);
    if (log_wanted)
        F(row_shift)(x, y, size, it.max, (REAL)log(sum));
    else
        F(row_share)(&it, (REAL)(1 / sum));
}
#undef SHARES
