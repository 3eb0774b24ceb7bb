/* Of a family: see family_f32.h. */

static double F(row_sum)(const strand *x, int64_t size)
{
    _Alignas(64) REAL room[BLOCK];
    double sum = 0;
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK, i = 0;
        const REAL *from = F(take_padded)(x, at, n, room, 0);
        VECTOR a = {0}, b = {0};
        for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
            a += F(load)(from + i);
            b += F(load)(from + i + WIDTH);
        }
        for (; i < n; i += WIDTH)
            a += F(load)(from + i);
        sum += F(total)(a + b);
    }
    return sum;
}

/* Of (x - mean) squared. */
static double F(row_squares)(const strand *x, int64_t size, REAL mean)
{
    _Alignas(64) REAL room[BLOCK];
    double sum = 0;
    for (int64_t at = 0; at < size; at += BLOCK) {
        int64_t n = size - at < BLOCK ? size - at : BLOCK, i = 0;
        const REAL *from = F(take_padded)(x, at, n, room, mean);
        VECTOR a = {0}, b = {0};
        for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {
            VECTOR c = F(load)(from + i) - mean, d = F(load)(from + i + WIDTH) - mean;
            fetch_next(x, at + i);
            fetch_next(x, at + i + WIDTH);
            a = F(fma)(c, c, a);
            b = F(fma)(d, d, b);
        }
        for (; i < n; i += WIDTH) {
            VECTOR c = F(load)(from + i) - mean;
            a = F(fma)(c, c, a);
        }
        sum += F(total)(a + b);
    }
    return sum;
}

/* y = (x - mean) * factor, times weight, plus bias, where there are any. */
INLINE void F(turn)(const REAL *x, REAL *y, int64_t n, REAL mean, REAL factor, const REAL *weight,
                    const REAL *bias)
{
    for (int64_t i = 0; i < n; i += WIDTH) {
        VECTOR v = (F(load)(x + i) - mean) * factor;
        v = weight ? v * F(load)(weight + i) : v;
        F(store)(y + i, bias ? v + F(load)(bias + i) : v);
    }
}

/* `row` has in, out, weight, bias at their operands' numbers. */
static void F(norm_row)(const strand *row, const tn_each_op *op)
{
    _Alignas(64) REAL rooms[4][BLOCK];
    const strand *x = &row[TN_EACH_IN], *y = &row[TN_EACH_OUT];
    const strand *weights = &row[TN_NORM_WEIGHT], *biases = &row[TN_NORM_BIAS];
    double count = (double)op->size;
    REAL mean = op->kind == TN_NORM_LAYER ? (REAL)(F(row_sum)(x, op->size) / count) : 0;
    REAL factor = (REAL)(1 / sqrt(F(row_squares)(x, op->size, mean) / count + op->value));
    for (int64_t at = 0; at < op->size; at += BLOCK) {
        int64_t n = op->size - at < BLOCK ? op->size - at : BLOCK;
        const REAL *from = F(take)(x, at, n, rooms[0]);
        REAL *to = F(room)(y, at, n, rooms[1]);
        const REAL *weight = weights->data ? F(take)(weights, at, n, rooms[2]) : NULL;
        const REAL *bias = biases->data ? F(take)(biases, at, n, rooms[3]) : NULL;
        if (weight && bias)
            F(turn)(from, to, n, mean, factor, weight, bias);
        else if (weight)
            F(turn)(from, to, n, mean, factor, weight, NULL);
        else
            F(turn)(from, to, n, mean, factor, NULL, bias);
        F(give)(y, at, n, to);
    }
}
