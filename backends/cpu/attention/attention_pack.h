/* Packs rows of Q, K and V into the forms that tiles read. Include after a family
 * (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_PACK_H
#define TENON_BACKENDS_CPU_ATTENTION_PACK_H

/* Loads the first n elements, fewer than a vector, from any alignment; the rest are zeros. */
INLINE VECTOR F(part_load)(const char *from, int64_t n)
{
#if LANES == 4
    VECTOR v = {0};
    memcpy(&v, from, (size_t)n * sizeof(REAL));
    return v;
#else
    return F(load_some)((const REAL *)(const void *)from, F(mask_first)(n));
#endif
}

INLINE void F(part_store)(char *to, int64_t n, VECTOR v)
{
#if LANES == 4
    memcpy(to, &v, (size_t)n * sizeof(REAL));
#else
    F(store_some)((REAL *)(void *)to, F(mask_first)(n), v);
#endif
}

/* Loads a row's elements first to first + n, padded with zeros. */
INLINE VECTOR F(row_part)(const char *row, int64_t step, int64_t first, int64_t n)
{
    if (step == (int64_t)sizeof(REAL)) {
        const char *at = row + first * step;
        return n >= WIDTH ? F(load)(at) : F(part_load)(at, n);
    }
    VECTOR v = {0};
    for (int64_t i = 0; i < WIDTH && i < n; i++)
        memcpy((char *)&v + i * (int64_t)sizeof(REAL), row + (first + i) * step, sizeof(REAL));
    return v;
}

/* Packs WIDTH keys by WIDTH elements, transposed. */
INLINE void F(pack_square)(const tni_at_pack *job, int64_t key, int64_t d, REAL *to)
{
    const int64_t n = job->size - d;
    VECTOR x[WIDTH];
    UNROLLED for (int i = 0; i < WIDTH; i++) x[i] =
        key + i < job->keys ? F(row_part)(job->k[key + i], job->k_step, d, n) : (VECTOR){0};
    F(transpose)(x);
    UNROLLED for (int i = 0; i < WIDTH; i++)
    {
        if (i < n)
            F(store)(to + i * COLUMNS, x[i]);
    }
}

/* Packs one line of each of V's panels of columns, for a key. `odd` becomes NaN where a value is
 * not finite. */
INLINE VECTOR F(pack_line)(const tni_at_pack *job, int64_t key, VECTOR odd)
{
    for (int64_t c = 0; c < job->value_size; c += COLUMNS) {
        REAL *to = (REAL *)(void *)(job->v_to + c / COLUMNS * job->v_panel) + key * COLUMNS;
        UNROLLED for (int j = 0; j < 2; j++)
        {
            const int64_t n = job->value_size - c - j * WIDTH;
            VECTOR v = {0};
            if (key < job->keys && n > 0)
                v = F(row_part)(job->v[key], job->v_step, c + j * WIDTH, n);
            F(store)(to + j * WIDTH, v);
            odd = F(fma)(v, (VECTOR){0}, odd);
        }
    }
    return odd;
}

/* Packs a panel of K, transposed. */
static void F(pack_transposed)(const tni_at_pack *job)
{
    REAL *to = (REAL *)(void *)job->k_to;
    for (int64_t key = 0; key < COLUMNS; key += WIDTH) {
        for (int64_t d = 0; d < job->size; d += WIDTH)
            F(pack_square)(job, key, d, to + key + d * COLUMNS);
    }
}

/* Packs the lines of V. Returns false if not all of it is finite. */
static bool F(pack_lines)(const tni_at_pack *job)
{
    VECTOR odd = {0};
    for (int64_t key = 0; key < COLUMNS; key++)
        odd = F(pack_line)(job, key, odd);
    return total_f64(F(wide)(odd)) == 0;
}

static bool F(pack)(const tni_at_pack *job)
{
    F(pack_transposed)(job);
    return !job->v_to || F(pack_lines)(job);
}

static int64_t F(q_row)(int64_t size)
{
    return (size + WIDTH - 1) / WIDTH * (int64_t)sizeof(VECTOR);
}

static int64_t F(k_panel)(int64_t size)
{
    return size * COLUMNS * (int64_t)sizeof(REAL);
}

static void F(pack_rows)(const char *const *from, int64_t step, int64_t size, int64_t rows,
                         char *to)
{
    const int64_t row = F(q_row)(size);
    for (int64_t r = 0; r < rows; r++) {
        REAL *at = (REAL *)(void *)(to + r * row);
        for (int64_t d = 0; d < size; d += WIDTH)
            F(store)(at + d, F(row_part)(from[r], step, d, size - d));
    }
}

#endif
