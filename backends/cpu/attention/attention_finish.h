/* The epilogue, from the state of rows to out and lse. Include after a family
 * (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_FINISH_H
#define TENON_BACKENDS_CPU_ATTENTION_FINISH_H

/* Totals of a row, with its sink as one more weight; scores in natural units. */
typedef struct F(account) {
    double greatest; /* score */
    double shrink;   /* factor for the sums made before the sink was added */
    double sum;      /* of the weights */
} F(account);

/* Converts to natural units. A score that saturated in the units of weights is left as it is. */
static double F(natural)(double most)
{
    return most >= (double)MOST || most <= -(double)MOST ? most : most / UNIT;
}

static F(account) F(account_of)(double sink, double most, double sum)
{
    const double nothing = -(double)INFINITY;
    most = most == nothing ? 0 : F(natural)(most);
    if (sink == nothing)
        return (F(account)){most, 1, sum};
    const double greatest = sink > most ? sink : most, shrink = exp(most - greatest);
    return (F(account)){greatest, shrink, sum * shrink + exp(sink - greatest)};
}

/* Replaces any NaN by the same one: which of several NaNs propagates depends on the order of an
 * instruction's operands, and so on the height of a tile. */
INLINE VECTOR F(one_nan)(VECTOR v)
{
    const VECTOR itself = v; /* not equal to v where that is NaN */
    return F(choose)(v == itself, v, F(splat)((REAL)NAN));
}

/* Stores elements first to first + n of a row, at most a vector. */
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
        F(row_put)(F(one_nan)(F(load)(values + c) * F(splat)(by)), to, p->out.element, c, n - c);
}

static void F(zero_row)(const tni_at_problem *p, char *to)
{
    const REAL zero = 0;
    for (int64_t c = 0; c < p->at->value_size; c++)
        memcpy(to + c * p->out.element, &zero, sizeof zero);
}

static void F(write_lse)(const tni_at_step *s, int64_t row, double lse)
{
    const REAL rounded = lse == lse ? (REAL)lse : (REAL)NAN;
    if (s->problem->lse.dtype)
        memcpy(tni_at_row(s->problem, s->unit, &s->problem->lse, row), &rounded, sizeof rounded);
}

static void F(finish)(const tni_at_step *s)
{
    const tni_at_problem *p = s->problem;
    const REAL *most = s->state.most, *sums = s->state.sums;
    for (int64_t r = 0; r < s->rows; r++) {
        const double sink = tni_at_sink(p, tni_at_head_of(p, s->unit, s->row + r));
        const double sum = total_f64(F(wide)(F(load)(sums + r * WIDTH)));
        char *out = tni_at_row(p, s->unit, &p->out, s->row + r);
        if (most[r] == -(REAL)INFINITY && sum == 0) {
            F(zero_row)(p, out);
            F(write_lse)(s, s->row + r, sink);
            continue;
        }
        const F(account) all = F(account_of)(sink, (double)most[r], sum);
        F(write_row)
        (p, (const REAL *)s->state.values + r * s->state.value_row,
         (REAL)(all.shrink / (all.sum * (1 - p->at->dropout))), out);
        if (p->lse.dtype)
            F(write_lse)(s, s->row + r, all.greatest + log(all.sum));
    }
}

#endif
