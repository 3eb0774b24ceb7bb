/* From what rows of bf16 have come to, to out and lse. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_FINISH_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_FINISH_H

#include "low_items.h"

/* What a row's values are multiplied by, and its lse. 0: nothing counts. */
static double divisor(const tni_at_problem *p, double sink, double most, double sum,
                      double *out_lse)
{
    const double nothing = -(double)INFINITY;
    *out_lse = sink;
    if (most == nothing && sum == 0)
        return 0;
    most = most == nothing ? 0 : most / LOG2_E;
    const double greatest = sink > most ? sink : most, shrink = exp(most - greatest);
    const double all = sum * shrink + (sink == nothing ? 0 : exp(sink - greatest));
    *out_lse = greatest + log(all);
    return all / shrink * (1 - p->at->dropout);
}

/* Sixteen columns of a row, or the first n. */
INLINE void write_columns(const tni_at_side *out, char *row, int64_t column, int64_t n, vf v)
{
    char *to = row + column * out->element;
    const vh half = narrow_bf16(v);
    const char *from = out->dtype == TN_F32 ? (const char *)&v : (const char *)&half;
    if (out->element == out->size && n >= LANES)
        memcpy(to, from, (size_t)(LANES * out->size));
    else
        for (int64_t i = 0; i < LANES && i < n; i++)
            memcpy(to + i * out->element, from + i * out->size, (size_t)out->size);
}

/* Sixteen rows, `by` which their values are multiplied; where it is 0, they are 0. */
static void write_rows(const tni_at_step *s, int64_t row, int64_t rows, const float *values, vf by)
{
    const tni_at_problem *p = s->problem;
    const int64_t columns = p->at->value_size;
    for (int64_t c = 0; c < columns; c += LANES) {
        vf x[LANES];
        UNROLLED for (int i = 0; i < LANES; i++) x[i] =
            choose_f32(by == 0, (vf){0}, load_f32(values + (c + i) * SIDE) * by);
        transpose_f32(x);
        for (int64_t i = 0; i < rows; i++)
            write_columns(&p->out, tni_at_row(p, s->unit, &p->out, s->row + row + i), c,
                          columns - c, x[i]);
    }
}

static void finish(const tni_at_step *s)
{
    const tni_at_problem *p = s->problem;
    const float *most = s->state.most, *sums = s->state.sums;
    for (int64_t row = 0; row < s->rows; row += LANES) {
        const int64_t rows = least_of(LANES, s->rows - row);
        float by[LANES] = {0};
        for (int64_t i = 0; i < rows; i++) {
            const double sink = tni_at_sink(p, tni_at_head_of(p, s->unit, s->row + row + i));
            double lse, all = divisor(p, sink, (double)most[row + i], (double)sums[row + i], &lse);
            const float rounded = (float)lse;
            by[i] = (float)(all == 0 ? 0 : 1 / all);
            if (p->lse.dtype)
                memcpy(tni_at_row(p, s->unit, &p->lse, s->row + row + i), &rounded, sizeof rounded);
        }
        write_rows(s, row, rows,
                   (const float *)s->state.values + row / SIDE * SIDE * s->state.value_row +
                       row % SIDE,
                   load_f32(by));
    }
}

#endif
