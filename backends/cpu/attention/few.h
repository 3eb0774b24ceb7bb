/* Of a family: few rows, with keys and values as they lie in memory. Elements of their rows are together. */

/* Rows of K and V that are fetched ahead. */
enum { F(AHEAD) = 2 * WIDTH };

/* Scores of one row and WIDTH keys or fewer. */
INLINE VECTOR F(few_scores)(const REAL *q, const char *const *k, int64_t keys, int64_t size)
{
    VECTOR sum[WIDTH];
    UNROLLED for (int i = 0; i < WIDTH; i++) sum[i] = (VECTOR){0};
    int64_t d = 0;
    if (keys == WIDTH)
        for (; d + WIDTH <= size; d += WIDTH) {
            const VECTOR x = F(load)(q + d);
            UNROLLED for (int i = 0; i < WIDTH; i++) sum[i] =
                F(fma)(F(load)((const REAL *)(const void *)k[i] + d), x, sum[i]);
        }
    for (; d < size; d += WIDTH) {
        const VECTOR x = F(load)(q + d);
        for (int i = 0; i < WIDTH && i < keys; i++)
            sum[i] = F(fma)(F(row_part)(k[i], sizeof(REAL), d, size - d), x, sum[i]);
    }
    F(transpose)(sum);
    VECTOR all = sum[0];
    UNROLLED for (int i = 1; i < WIDTH; i++) all += sum[i];
    return all;
}

/* One row's values of a vector of columns or fewer. */
static void F(few_values)(const tni_at_step *s, const REAL *weights, REAL shrink, REAL *to)
{
    const int64_t columns = s->problem->at->value_size;
    const bool careful = s->bias || s->problem->at->dropout != 0;
    for (int64_t c = 0; c < columns; c += 8 * WIDTH) {
        VECTOR sum[8];
        const int64_t left = columns - c;
        UNROLLED for (int v = 0; v < 8; v++) sum[v] =
            v * WIDTH < left ? F(load)(to + c + v * WIDTH) * F(splat)(shrink) : (VECTOR){0};
        for (int64_t j = 0; j < s->keys; j++) {
            const REAL *row = (const REAL *)(const void *)s->v_at[j] + c;
            const VECTOR x = F(splat)(weights[j]);
            if (careful && weights[j] == 0)
                continue;
            if (left >= 8 * WIDTH)
                UNROLLED for (int v = 0; v < 8; v++) sum[v] =
                    F(fma)(x, F(load)(row + v * WIDTH), sum[v]);
            else
                UNROLLED for (int v = 0; v < 8; v++) if (v * WIDTH < left) sum[v] = F(fma)(
                    x, F(row_part)((const char *)row, sizeof(REAL), v * WIDTH, left - v * WIDTH),
                    sum[v]);
        }
        UNROLLED for (int v = 0; v < 8; v++) if (v * WIDTH < left)
            F(store)(to + c + v * WIDTH, sum[v]);
    }
}

/* -infinity behind the last key, up to whole pairs of vectors. Returns how many keys there are then. */
static int64_t F(few_pad)(REAL *row, int64_t keys)
{
    const int64_t whole = (keys + COLUMNS - 1) / COLUMNS * COLUMNS;
    for (int64_t j = keys; j < whole; j++)
        row[j] = -(REAL)INFINITY;
    return whole;
}

static void F(few_step)(const tni_at_step *step)
{
    tni_at_step s = *step;
    const NUMBERS is = F(numbers_of)(s.problem);
    const int64_t size = s.problem->at->size, q_row = F(q_row)(size);
    _Alignas(64) REAL shrink[TNI_AT_ROWS_MOST];
    REAL *scores = (REAL *)(void *)s.room;
    for (int64_t j = 0; j < s.keys; j += WIDTH) {
        const int64_t n = s.keys - j < WIDTH ? s.keys - j : WIDTH;
        for (int64_t r = 0; r < s.rows; r++)
            F(store)
        (scores + r * F(SCORE_ROW) + j,
         F(few_scores)((const REAL *)(const void *)(s.q + r * q_row), s.k_at + j, n, size));
    }
    for (int64_t r = 0; r < s.rows; r++) {
        (void)F(few_pad)(scores + r * F(SCORE_ROW), s.keys);
        if (s.bias)
            (void)F(few_pad)((REAL *)(uintptr_t)s.bias + r * s.bias_row, s.keys);
    }
    s.keys = (s.keys + COLUMNS - 1) / COLUMNS * COLUMNS;
    F(weigh)(&s, &is, scores, shrink);
    s.keys = step->keys;
    if (s.problem->at->dropout != 0)
        F(drop)(&s, scores);
    for (int64_t r = 0; r < s.rows; r++)
        F(few_values)
    (&s, scores + r * F(SCORE_ROW), shrink[r], (REAL *)s.state.values + r * s.state.value_row);
}

static void F(merge)(const tni_at_state *to, const tni_at_state *other, int64_t rows,
                     int64_t value_size)
{
    for (int64_t r = 0; r < rows; r++) {
        REAL *most = (REAL *)to->most + r, before = *most, found = ((const REAL *)other->most)[r];
        const REAL base = F(raise)(most, found);
        const VECTOR a = F(weight)(F(splat)(before - base)), b = F(weight)(F(splat)(found - base));
        REAL *sums = (REAL *)to->sums + r * WIDTH, *values = (REAL *)to->values + r * to->value_row;
        const REAL *more = (const REAL *)other->values + r * other->value_row;
        F(store)(sums, F(load)(sums) * a + F(load)((const REAL *)other->sums + r * WIDTH) * b);
        for (int64_t c = 0; c < value_size; c += WIDTH)
            F(store)(values + c, F(load)(values + c) * a + F(load)(more + c) * b);
    }
}
