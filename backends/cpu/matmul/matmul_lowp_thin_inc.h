/* Products of few rows with a large matrix, which is read once and not packed: squares of it become
 * units of a vector of columns, as in packing, and are multiplied immediately. Include after
 * matmul_lowp_units.h. Before each inclusion, define:
 *
 *     T(name)      the name of a function of this inclusion
 *     UNIT         the kind of unit of B
 *     X_UNIT       bytes of a unit of A, as written by `lay`
 *     SUMS         a vector of sums
 *     CHUNK        products that are summed before the result is added to the previous chunks
 *     TURN_OVER    bits of B's units to invert; unless 0, rows of A end with the initial sums
 *     T(multiply)(s, y, x)    s plus the products of units y, of B, and the one unit at x, of A
 *
 * `rows` is a constant. */

INLINE SUMS T(few_begin)(const tni_mm_few *job, int64_t row)
{
    uint32_t begin = 0;
    if (TURN_OVER)
        memcpy(&begin, job->x + (row + 1) * job->x_row - TNI_MM_FEW_MORE, sizeof begin);
    return (SUMS)(begin - (vu){0});
}

/* A vector of columns: adds the products of places q to `end` to the sums at `to`, or, with
 * `begin`, to the initial value. */
INLINE void T(few_places)(const tni_mm_few *job, int64_t column, int64_t q, int64_t end, bool begin,
                          char *to, const bool across, const int rows)
{
    const int places = across ? strip_places(UNIT) : LANES;
    SUMS sum[TNI_MM_FEW];
    UNROLLED for (int r = 0; r < rows; r++) sum[r] =
        begin ? T(few_begin)(job, r) : (SUMS)load_i32(to + r * job->sums_row);
    for (; q < end; q += places) {
        vu y[LANES];
        read_square(UNIT, BY_DEPTH, across, LANES, places, &job->b, column, q, y);
        UNROLLED for (int u = 0; u < places; u++)
        {
            const char *x = job->x + (q + u) * X_UNIT;
            UNROLLED for (int r = 0; r < rows; r++) sum[r] =
                T(multiply)(sum[r], y[u] ^ TURN_OVER, x + r * job->x_row);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++) store_i32(to + r * job->sums_row, (vi)sum[r]);
}

/* Adds the sums of a chunk to those of the chunks before. */
static void T(few_add)(const tni_mm_few *job, int64_t columns)
{
    for (int64_t r = 0; r < job->rows; r++) {
        for (int64_t j = 0; j < columns; j += LANES) {
            const int64_t at = r * job->sums_row + 4 * j;
            SUMS sum = (SUMS)load_i32(job->sums + at) + (SUMS)load_i32(job->room + at);
            store_i32(job->sums + at, (vi)sum);
        }
    }
}

/* Rows of B are contiguous: they are read a few at a time, sequentially. */
INLINE void T(few_across)(const tni_mm_few *job, int64_t units, int64_t chunk, const int rows)
{
    const int places = strip_places(UNIT);
    for (int64_t q = 0; q < units; q += places) {
        char *to = q < chunk ? job->sums : job->room;
        for (int64_t column = 0; column < job->b.lines; column += LANES)
            T(few_places)
        (job, column, q, q + places, q % chunk == 0, to + 4 * column, true, rows);
        if (q >= chunk && ((q + places) % chunk == 0 || q + places >= units))
            T(few_add)(job, job->b.lines);
    }
}

/* B is contiguous along k, or not at all: each vector of columns is read to its end. */
INLINE void T(few_along)(const tni_mm_few *job, int64_t units, int64_t chunk, const int rows)
{
    for (int64_t column = 0; column < job->b.lines; column += LANES) {
        tni_mm_few part = *job;
        part.sums = job->sums + 4 * column;
        part.room = job->room + 4 * column;
        for (int64_t q = 0; q < units; q += chunk) {
            T(few_places)
            (&part, column, q, least(q + chunk, units), true, q == 0 ? part.sums : part.room, false,
             rows);
            if (q > 0)
                T(few_add)(&part, 1);
        }
    }
}

INLINE void T(few_rows)(const tni_mm_few *job, const int rows)
{
    const int64_t per = unit_elements(UNIT), chunk = CHUNK / per;
    const int64_t units = (job->b.depth + per - 1) / per;
    if (lies_across(UNIT, &job->b))
        T(few_across)(job, units, chunk, rows);
    else
        T(few_along)(job, units, chunk, rows);
}

/* Rounds the rows up to 1, 4 or 8; the results of the additional rows are meaningless. */
static void T(few)(const tni_mm_few *job)
{
    if (job->rows == 1)
        T(few_rows)(job, 1);
    else if (job->rows <= 4)
        T(few_rows)(job, 4);
    else
        T(few_rows)(job, TNI_MM_FEW);
}
