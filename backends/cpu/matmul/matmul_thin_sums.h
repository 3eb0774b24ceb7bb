/* Sums of few rows of A with a large B, by chunks of k. Include after a family
 * (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_MATMUL_THIN_SUMS_H
#define TENON_BACKENDS_CPU_MATMUL_THIN_SUMS_H

enum { F(THIN_STEP) = 8 }; /* rows of B, or chunks, that are summed at once */

/* A vector of columns, for all rows of A: adds the products of `steps` rows of B (a constant) from
 * row p on. */
SPECIAL void F(thin_steps)(const tni_mm_thin *job, int64_t p, int64_t column, F(mask) some,
                           const int steps, const bool whole)
{
    const REAL *b = (const REAL *)job->b + p * job->b_row + column;
    const F(loose) *x = (const F(loose) *)job->x + p;
    REAL *to = (REAL *)job->to + column;
    VECTOR y[F(THIN_STEP)];
    UNROLLED for (int q = 0; q < steps; q++) y[q] =
        whole ? F(load)(b + q * job->b_row) : F(load_some)(b + q * job->b_row, some);
    for (int64_t r = 0; r < job->rows; r++, x += job->x_row, to += job->to_row) {
        VECTOR sum = p == 0 ? (VECTOR){0} : whole ? F(load)(to) : F(load_some)(to, some);
        UNROLLED for (int q = 0; q < steps; q++) sum = F(fma)(F(splat)(x[q]), y[q], sum);
        if (whole)
            F(store)(to, sum);
        else
            F(store_some)(to, some, sum);
    }
}

SPECIAL void F(thin_pass)(const tni_mm_thin *job, int64_t p, const int steps)
{
    int64_t j = 0;
    for (; j + WIDTH <= job->columns; j += WIDTH)
        F(thin_steps)(job, p, j, F(mask_first)(0), steps, true);
    if (j < job->columns)
        F(thin_steps)(job, p, j, F(mask_first)(job->columns - j), steps, false);
}

/* Rows of B are contiguous. */
static void F(thin_wide)(const tni_mm_thin *job)
{
    int64_t p = 0;
    for (; p + F(THIN_STEP) <= job->depth; p += F(THIN_STEP))
        F(thin_pass)(job, p, F(THIN_STEP));
    for (; p < job->depth; p++)
        F(thin_pass)(job, p, 1);
}

/* Loads a square of B, transposed: n columns of m elements along k, padded with zeros to WIDTH. */
SPECIAL void F(thin_square)(const REAL *b, int64_t b_column, int64_t n, int64_t m, VECTOR *out,
                            const bool whole)
{
    UNROLLED for (int i = 0; i < WIDTH; i++)
    {
        out[i] = (VECTOR){0};
        if (whole)
            out[i] = F(load)(b + i * b_column);
        else if (i < n)
            out[i] = F(load_some)(b + i * b_column, F(mask_first)(m));
    }
    F(transpose)(out);
}

/* THIN_STEP whole chunks of at most one vector of columns, side by side, because each is a
 * dependency chain. */
SPECIAL void F(thin_chunks)(const tni_mm_thin *job, const F(loose) * x, const REAL *b, REAL *to)
{
    const F(mask) some = F(mask_first)(job->columns);
    const int64_t b_chunk = TNI_MM_DEPTH * job->b_row;
    VECTOR sum[F(THIN_STEP)];
    UNROLLED for (int c = 0; c < F(THIN_STEP); c++) sum[c] = (VECTOR){0};
    for (int64_t p = 0; p < TNI_MM_DEPTH; p++, x++, b += job->b_row) {
        UNROLLED for (int c = 0; c < F(THIN_STEP); c++) sum[c] =
            F(fma)(F(splat)(x[c * TNI_MM_DEPTH]), F(load_some)(b + c * b_chunk, some), sum[c]);
    }
    UNROLLED for (int c = 0; c < F(THIN_STEP); c++)
        F(store_some)(to + c * job->to_chunk, some, sum[c]);
}

/* As many whole chunks as a vector has lanes, of one contiguous column: one lane for each chunk. */
static void F(thin_dots)(const tni_mm_thin *job, const REAL *x, const REAL *b, REAL *to)
{
    VECTOR sum = {0}, u[WIDTH], v[WIDTH];
    for (int64_t p = 0; p < TNI_MM_DEPTH; p += WIDTH) {
        F(thin_square)(x + p, TNI_MM_DEPTH, WIDTH, WIDTH, u, true);
        F(thin_square)(b + p, TNI_MM_DEPTH, WIDTH, WIDTH, v, true);
        UNROLLED for (int i = 0; i < WIDTH; i++) sum = F(fma)(u[i], v[i], sum);
    }
    for (int i = 0; i < WIDTH; i++)
        to[i * job->to_chunk] = sum[i];
}

/* Several chunks of few columns, at most a vector of them. */
static void F(thin_narrow)(const tni_mm_thin *job)
{
    const bool dots = job->columns == 1 && job->b_row == 1;
    const int64_t step = (dots ? WIDTH : F(THIN_STEP)) * TNI_MM_DEPTH;
    tni_mm_thin rest = *job;
    for (; rest.depth >= step; rest.depth -= step) {
        for (int64_t r = 0; r < job->rows; r++) {
            const REAL *x = (const REAL *)rest.x + r * job->x_row;
            REAL *to = (REAL *)rest.to + r * job->to_row;
            if (dots)
                F(thin_dots)(job, x, rest.b, to);
            else
                F(thin_chunks)(job, x, rest.b, to);
        }
        rest.x = (const REAL *)rest.x + step;
        rest.b = (const REAL *)rest.b + step * job->b_row;
        rest.to = (REAL *)rest.to + step / TNI_MM_DEPTH * job->to_chunk;
    }
    for (int64_t left = rest.depth; left > 0; left -= TNI_MM_DEPTH) {
        rest.depth = left < TNI_MM_DEPTH ? left : TNI_MM_DEPTH;
        F(thin_wide)(&rest);
        rest.x = (const REAL *)rest.x + TNI_MM_DEPTH;
        rest.b = (const REAL *)rest.b + TNI_MM_DEPTH * job->b_row;
        rest.to = (REAL *)rest.to + job->to_chunk;
    }
}

/* The tail of a vector of columns, where squares are not whole: from p on. */
static void F(thin_rest)(const tni_mm_thin *job, int64_t column, int64_t p, int64_t n, VECTOR *sum)
{
    const REAL *b = (const REAL *)job->b + column * job->b_column;
    VECTOR y[WIDTH];
    for (; p < job->depth; p += WIDTH) {
        const int64_t m = job->depth - p < WIDTH ? job->depth - p : WIDTH;
        F(thin_square)(b + p, job->b_column, n, m, y, false);
        for (int64_t r = 0; r < job->rows; r++) {
            const F(loose) *x = (const F(loose) *)job->x + r * job->x_row + p;
            for (int64_t i = 0; i < m; i++)
                sum[r] = F(fma)(F(splat)(x[i]), y[i], sum[r]);
        }
    }
}

/* B is contiguous along k: one chunk of a whole vector of columns. More columns at once would be
 * more streams than the hardware prefetcher follows. `rows` is a constant. */
SPECIAL void F(thin_strip)(const tni_mm_thin *job, int64_t column, const int rows)
{
    const REAL *b = (const REAL *)job->b + column * job->b_column;
    const F(loose) *x = job->x;
    VECTOR sum[TNI_MM_THIN], y[WIDTH];
    int64_t p = 0;
    UNROLLED for (int r = 0; r < rows; r++) sum[r] = (VECTOR){0};
    for (; p + WIDTH <= job->depth; p += WIDTH) {
        F(load_transposed)(b + p, job->b_column, y);
        UNROLLED for (int r = 0; r < rows; r++)
        {
            UNROLLED for (int i = 0; i < WIDTH; i++) sum[r] =
                F(fma)(F(splat)(x[r * job->x_row + p + i]), y[i], sum[r]);
        }
    }
    if (p < job->depth)
        F(thin_rest)(job, column, p, WIDTH, sum);
    UNROLLED for (int r = 0; r < rows; r++)
        F(store)((REAL *)job->to + r * job->to_row + column, sum[r]);
}

SPECIAL void F(thin_rows)(const tni_mm_thin *job, const int rows)
{
    int64_t column = 0;
    for (; column + WIDTH <= job->columns; column += WIDTH)
        F(thin_strip)(job, column, rows);
    if (column < job->columns) {
        const int64_t n = job->columns - column;
        VECTOR sum[TNI_MM_THIN] = {{0}};
        F(thin_rest)(job, column, 0, n, sum);
        UNROLLED for (int r = 0; r < rows; r++)
            F(store_some)((REAL *)job->to + r * job->to_row + column, F(mask_first)(n), sum[r]);
    }
}

static void F(thin_transposed)(const tni_mm_thin *job)
{
    switch (job->rows) {
    case 1: F(thin_rows)(job, 1); break;
    case 2: F(thin_rows)(job, 2); break;
    case 3: F(thin_rows)(job, 3); break;
    case 4: F(thin_rows)(job, 4); break;
    case 5: F(thin_rows)(job, 5); break;
    case 6: F(thin_rows)(job, 6); break;
    case 7: F(thin_rows)(job, 7); break;
    default: F(thin_rows)(job, TNI_MM_THIN);
    }
}

/* Adds the sums of the chunks in order, for n columns. */
static void F(thin_total)(const void *chunks, int64_t chunk, int64_t count, int64_t n, void *to)
{
    const REAL *from = chunks;
    REAL *out = to;
    for (int64_t j = 0; j < n; j += WIDTH) {
        const F(mask) some = F(mask_first)(n - j < WIDTH ? n - j : WIDTH);
        VECTOR sum = F(load_some)(from + j, some);
        for (int64_t c = 1; c < count; c++)
            sum += F(load_some)(from + c * chunk + j, some);
        F(store_some)(out + j, some, sum);
    }
}

#endif
