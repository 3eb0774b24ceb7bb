/* Of a family: from what rows have come to, to out and lse. */

/* What a row's values are divided by, 0: nothing counts; and its lse. */
static double F(divide_by)(const tni_at_problem *p, double sink, double most, double sum,
                           double *out_lse)
{
    const double nothing = -(double)INFINITY;
    *out_lse = sink;
    if (most == nothing && sum == 0)
        return 0;
    most = most == nothing ? 0 : most / UNIT;
    const double greatest = sink > most ? sink : most;
    const double shrink = exp(most - greatest);
    const double all = sum * shrink + (sink == nothing ? 0 : exp(sink - greatest));
    *out_lse = greatest + log(all);
    return all / shrink * (1 - p->at->dropout);
}

/* Elements first to first + n of a row, at most a vector. */
INLINE void F(row_put)(VECTOR v, char *row, int64_t step, int64_t first, int64_t n)
{
    char *at = row + first * step;
    if (step != (int64_t)sizeof(REAL))
        for (int64_t i = 0; i < WIDTH && i < n; i++)
            memcpy(row + (first + i) * step, (const char *)&v + i * (int64_t)sizeof(REAL),
                   sizeof(REAL));
    else if (n >= WIDTH)
        F(store)(at, v);
    else
        F(part_store)(at, n, v);
}

static void F(write_row)(const tni_at_problem *p, const REAL *values, REAL by, char *to)
{
    const int64_t n = p->at->value_size;
    for (int64_t c = 0; c < n; c += WIDTH)
        F(row_put)(F(load)(values + c) * F(splat)(by), to, p->out.element, c, n - c);
}

static void F(zero_row)(const tni_at_problem *p, char *to)
{
    const REAL zero = 0;
    for (int64_t c = 0; c < p->at->value_size; c++)
        memcpy(to + c * p->out.element, &zero, sizeof zero);
}

static void F(finish)(const tni_at_step *s)
{
    const tni_at_problem *p = s->problem;
    const REAL *most = s->state.most, *sums = s->state.sums;
    for (int64_t r = 0; r < s->rows; r++) {
        const double sink = tni_at_sink(p, tni_at_head_of(p, s->unit, s->row + r));
        const double sum = F(lanes_sum)(F(load)(sums + r * WIDTH));
        double lse, by = F(divide_by)(p, sink, (double)most[r], sum, &lse);
        char *out = tni_at_row(p, s->unit, &p->out, s->row + r);
        const REAL *values = (const REAL *)s->state.values + r * s->state.value_row;
        if (by == 0)
            F(zero_row)(p, out);
        else
            F(write_row)(p, values, (REAL)(1 / by), out);
        if (p->lse.dtype) {
            const REAL rounded = (REAL)lse;
            memcpy(tni_at_row(p, s->unit, &p->lse, s->row + r), &rounded, sizeof rounded);
        }
    }
}
