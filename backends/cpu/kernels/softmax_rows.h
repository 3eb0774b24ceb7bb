/* Of a family: see family_f32.h. */

static REAL F(row_max)(const strand *x, int64_t size)
{
    _Alignas(64) REAL room[BLOCK];
    REAL max = (REAL)-INFINITY;
    VECTOR a = F(splat)(max), b = a;
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK, i = 0;
        const REAL *block = F(take_padded)(x, at, n, room, (REAL)-INFINITY);
        for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
            a = F(greater)(F(load)(block + i), a);
            b = F(greater)(F(load)(block + i + WIDTH), b);
        }
        for (; i < n; i += WIDTH)
            a = F(greater)(F(load)(block + i), a);
    }
    a = F(greater)(a, b);
    for (int lane = 0; lane < WIDTH; lane++)
        max = a[lane] > max ? a[lane] : max;
    return max;
}

/* The sum of exp(x - max), which go to `mid` if there is one. */
static double F(row_exp)(const strand *x, const strand *mid, int64_t size, REAL max)
{
    _Alignas(64) REAL room[BLOCK], other[BLOCK];
    double sum = 0;
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK;
        const REAL *from = F(take_padded)(x, at, n, room, (REAL)-INFINITY);
        REAL *to = mid ? F(room)(mid, at, n, other) : other;
        VECTOR part = {0};
        for (int64_t i = 0; i < n; i += WIDTH) {
            VECTOR e = F(exp)(F(load)(from + i) - max);
            fetch_next(x, at + i);
            part += e;
            F(store)(to + i, e);
        }
        sum += F(total)(part);
        if (mid)
            F(give)(mid, at, n, to);
    }
    return sum;
}

/* y = x * factor; of x itself rather than of its exponentials: exp(x - max) * factor. */
static void F(row_scale)(const strand *x, const strand *y, int64_t size, REAL factor, bool again,
                         REAL max)
{
    _Alignas(64) REAL room[BLOCK], other[BLOCK];
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK;
        const REAL *from = F(take)(x, at, n, room);
        REAL *to = F(room)(y, at, n, other);
        if (again)
            for (int64_t i = 0; i < n; i += WIDTH)
                F(store)(to + i, F(exp)(F(load)(from + i) - max) * factor);
        else
            for (int64_t i = 0; i < n; i += WIDTH)
                F(store)(to + i, F(load)(from + i) * factor);
        F(give)(y, at, n, to);
    }
}

static void F(row_shift)(const strand *x, const strand *y, int64_t size, REAL max, REAL less)
{
    _Alignas(64) REAL room[BLOCK], other[BLOCK];
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK;
        const REAL *from = F(take)(x, at, n, room);
        REAL *to = F(room)(y, at, n, other);
        for (int64_t i = 0; i < n; i += WIDTH)
            F(store)(to + i, (F(load)(from + i) - max) - less);
        F(give)(y, at, n, to);
    }
}

static void F(softmax_row)(const strand *x, const strand *y, int64_t size, bool log_wanted)
{
    _Alignas(64) REAL room[ROW_ROOM];
    const strand kept = {.data = (char *)room,
                         .dtype = sizeof(REAL) == 4 ? TN_F32 : TN_F64,
                         .size = sizeof(REAL),
                         .stride = 1};
    const strand *mid = y->size == kept.size && !y->stream ? y : size <= ROW_ROOM ? &kept : NULL;
    REAL max = F(row_max)(x, size);
    double sum = F(row_exp)(x, log_wanted ? NULL : mid, size, max);
    if (log_wanted)
        F(row_shift)(x, y, size, max, (REAL)log(sum));
    else
        F(row_scale)(mid ? mid : x, y, size, (REAL)(1 / sum), !mid, max);
}
