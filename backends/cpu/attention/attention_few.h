/* Few rows, with keys and values read in place. Elements of their rows are contiguous and have
 * dtype `form`, a constant wherever it is an argument: the family's own, or 16-bit floats that are
 * widened to f32. Include after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_FEW_H
#define TENON_BACKENDS_CPU_ATTENTION_FEW_H

/* Memory bandwidth is higher with several streams than with one: values of a step are read as RUNS
 * runs of keys, one key of each run in turn; remaining keys come last. For K, there are as many
 * runs as lanes. */
enum { F(RUNS) = 8 };

INLINE int64_t F(few_bytes)(const tn_dtype form)
{
    return (int64_t)(form >> 8 & 255) / 8;
}

/* Loads a vector of a row's elements, starting at element `at`. */
INLINE VECTOR F(few_load)(const tn_dtype form, const char *row, int64_t at)
{
#if defined(REAL_F32)
    if (form == TN_BF16)
        return widen_bf16(load_u16(row + 2 * at));
    if (form == TN_F16)
        return widen_f16(load_u16(row + 2 * at));
#endif
    return F(load)(row + at * F(few_bytes)(form));
}

/* Loads the first n of them, or all, padded with zeros. */
INLINE VECTOR F(few_part)(const tn_dtype form, const char *row, int64_t at, int64_t n)
{
    if (n >= WIDTH)
        return F(few_load)(form, row, at);
    if (form == TYPE)
        return F(part_load)(row + at * (int64_t)sizeof(REAL), n);
    char some[sizeof(VECTOR)] = {0};
    memcpy(some, row + 2 * at, (size_t)n * 2);
    return F(few_load)(form, some, 0);
}

/* Scores of one row and at most WIDTH keys. */
INLINE VECTOR F(few_scores)(const tn_dtype form, const REAL *q, const char *const *k, int64_t keys,
                            int64_t size)
{
    VECTOR sum[WIDTH];
    UNROLLED for (int i = 0; i < WIDTH; i++) sum[i] = (VECTOR){0};
    int64_t d = 0;
    if (keys == WIDTH)
        for (; d + WIDTH <= size; d += WIDTH) {
            const VECTOR x = F(load)(q + d);
            UNROLLED for (int i = 0; i < WIDTH; i++) sum[i] =
                F(fma)(F(few_load)(form, k[i], d), x, sum[i]);
        }
    for (; d < size; d += WIDTH) {
        const VECTOR x = F(load)(q + d);
        for (int i = 0; i < WIDTH && i < keys; i++)
            sum[i] = F(fma)(F(few_part)(form, k[i], d, size - d), x, sum[i]);
    }
    F(transpose)(sum);
    VECTOR all = sum[0];
    UNROLLED for (int i = 1; i < WIDTH; i++) all += sum[i];
    return all;
}

/* Rows and vectors of columns that are summed together: about half of the registers. */
#if LANES == 16
#define FEW_ROWS 4
#else
#define FEW_ROWS 2
#endif
#define FEW_SUMS (4 * FEW_ROWS)

/* The key after j, which is the n-th to be read, in the order of the runs. */
INLINE int64_t F(few_next)(int64_t keys, int64_t n, int64_t j)
{
    const int64_t run = keys / F(RUNS), whole = run * F(RUNS);
    if (n + 1 >= whole)
        return n + 1;
    return j + run < whole ? j + run : j + run - whole + 1;
}

/* Adds the values of `rows` rows in `vectors` vectors of columns, both constants; unless `whole`,
 * only in the columns that exist. Sums over all keys, or only over the `counted` ones if that is
 * not NULL (also a constant). */
SPECIAL void F(few_columns)(const tn_dtype form, const tni_at_step *s, const REAL *weights,
                            const REAL *shrink, int64_t row, int64_t column, const int rows,
                            const int vectors, const bool whole, const uint8_t *counted)
{
    const int64_t left = s->problem->at->value_size - column;
    REAL *to = (REAL *)s->state.values + row * s->state.value_row + column;
    VECTOR sum[FEW_ROWS][8];
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < vectors; v++) sum[r][v] =
        v * WIDTH < left
            ? F(load)(to + r * s->state.value_row + v * WIDTH) * F(splat)(shrink[row + r])
            : (VECTOR){0};
    for (int64_t n = 0, j = 0; n < s->keys; j = F(few_next)(s->keys, n++, j)) {
        const char *from = s->v_at[j];
        const char *ahead = s->v_at[j + 1 < s->keys ? j + 1 : j];
        UNROLLED for (int v = 0; v < vectors; v++)
        {
            VECTOR y = {0};
            if (whole || (v + 1) * WIDTH <= left)
                y = F(few_load)(form, from, column + v * WIDTH);
            else if (v * WIDTH < left)
                y = F(few_part)(form, from, column + v * WIDTH, left - v * WIDTH);
            if (whole && v * WIDTH * F(few_bytes)(form) % 64 == 0)
                __builtin_prefetch(ahead + (column + v * WIDTH) * F(few_bytes)(form));
            UNROLLED for (int r = 0; r < rows; r++)
            {
                const REAL weight = weights[(row + r) * F(SCORE_ROW) + j];
                if (!counted || counted[r * TNI_AT_BLOCK_MOST + j])
                    sum[r][v] = F(fma)(F(splat)(weight), y, sum[r][v]);
            }
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++) if (v * WIDTH < left)
            F(store)(to + r * s->state.value_row + v * WIDTH, sum[r][v]);
}

/* `some`, a constant: some keys may not count for a row. */
SPECIAL void F(few_rows)(const tn_dtype form, const tni_at_step *s, const REAL *weights,
                         const REAL *shrink, int64_t row, const int rows, const int vectors,
                         const bool some)
{
    const int64_t columns = s->problem->at->value_size, step = vectors * WIDTH;
    uint8_t counted[FEW_ROWS * TNI_AT_BLOCK_MOST];
    for (int r = 0; some && r < rows; r++)
        F(find_counted)(s, row + r, counted + r * TNI_AT_BLOCK_MOST);
    for (int64_t c = 0; c < columns; c += step) {
        if (some)
            F(few_columns)(form, s, weights, shrink, row, c, rows, vectors, false, counted);
        else if (columns - c >= step)
            F(few_columns)(form, s, weights, shrink, row, c, rows, vectors, true, NULL);
        else
            F(few_columns)(form, s, weights, shrink, row, c, rows, vectors, false, NULL);
    }
}

SPECIAL void F(few_values)(const tn_dtype form, const tni_at_step *s, const REAL *weights,
                           const REAL *shrink, const bool some)
{
    int64_t row = 0;
    for (; row + FEW_ROWS <= s->rows; row += FEW_ROWS)
        F(few_rows)(form, s, weights, shrink, row, FEW_ROWS, 4, some);
    for (; row + 2 <= s->rows; row += 2)
        F(few_rows)(form, s, weights, shrink, row, 2, FEW_SUMS / 2, some);
    if (row < s->rows)
        F(few_rows)(form, s, weights, shrink, row, 1, 8, some);
}

/* Pads with -infinity after the last key, up to whole pairs of vectors. */
static void F(few_pad)(REAL *row, int64_t keys)
{
    const int64_t whole = (keys + COLUMNS - 1) / COLUMNS * COLUMNS;
    for (int64_t j = keys; j < whole; j++)
        row[j] = -(REAL)INFINITY;
}

/* Scores of all rows and `count` keys, at most WIDTH: from `first` on, `step` apart. */
INLINE void F(few_score)(const tn_dtype form, const tni_at_step *s, int64_t first, int64_t step,
                         int64_t count)
{
    const int64_t size = s->problem->at->size;
    const char *k[WIDTH];
    REAL lane[WIDTH];
    for (int64_t i = 0; i < count; i++)
        k[i] = s->k_at[first + i * step];
    for (int64_t r = 0; r < s->rows; r++) {
        const REAL *q = (const REAL *)(const void *)(s->q + r * F(q_row)(size));
        REAL *scores = (REAL *)(void *)s->room + r * F(SCORE_ROW) + first;
        F(store)(lane, F(few_scores)(form, q, k, count, size));
        for (int64_t i = 0; i < count; i++)
            scores[i * step] = lane[i];
    }
}

/* few_values for the case that some keys do not count for a row. Not inlined, so that it has its
 * own register allocation. */
typedef void F(few_counted)(const tni_at_step *step, const REAL *weights, const REAL *shrink);

SPECIAL void F(few_step_of)(const tn_dtype form, const tni_at_step *step,
                            F(few_counted) * add_counted)
{
    tni_at_step s = *step;
    const NUMBERS is = F(numbers_of)(s.problem);
    _Alignas(64) REAL shrink[TNI_AT_ROWS_MOST];
    REAL *scores = (REAL *)(void *)s.room;
    const int64_t run = s.keys / WIDTH;
    for (int64_t j = 0; j < run; j++)
        F(few_score)(form, &s, j, run, WIDTH);
    if (run * WIDTH < s.keys)
        F(few_score)(form, &s, run * WIDTH, 1, s.keys - run * WIDTH);
    for (int64_t r = 0; r < s.rows; r++) {
        F(few_pad)(scores + r * F(SCORE_ROW), s.keys);
        if (s.bias)
            F(few_pad)((REAL *)(uintptr_t)s.bias + r * s.bias_row, s.keys);
    }
    s.keys = (s.keys + COLUMNS - 1) / COLUMNS * COLUMNS;
    F(weigh)(&s, &is, scores, shrink);
    s.keys = step->keys;
    if (s.problem->at->dropout != 0)
        F(drop)(&s, scores);
    if (s.bias || s.problem->at->dropout != 0)
        add_counted(&s, scores, shrink);
    else
        F(few_values)(form, &s, scores, shrink, false);
}

#define FEW_STEP(name, form)                                              \
    static __attribute__((noinline)) void F(name##_counted)(              \
        const tni_at_step *step, const REAL *weights, const REAL *shrink) \
    {                                                                     \
        F(few_values)(form, step, weights, shrink, true);                 \
    }                                                                     \
    static void F(name)(const tni_at_step *step)                          \
    {                                                                     \
        F(few_step_of)(form, step, F(name##_counted));                    \
    }
FEW_STEP(few_step, TYPE)
#if defined(REAL_F32)
FEW_STEP(few_step_bf16, TN_BF16)
FEW_STEP(few_step_f16, TN_F16)
#endif
#undef FEW_STEP

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

#endif
