/* Epilogue of bf16: from the state of rows to out and lse. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_FINISH_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_FINISH_H

#include "attention_low_items.h"

/* Returns the divisor of a row's values, or 0 if no key counts; and its lse. */
static double divisor(const tni_at_problem *p, double sink, double most, double sum,
                      double *out_lse)
{
    const double nothing = -(double)INFINITY;
    *out_lse = sink;
    if (most == nothing && sum == 0)
        return 0;
    if (most == nothing)
        most = 0;
    else if (most < (double)FLT_MAX && most > -(double)FLT_MAX) /* else it saturated */
        most /= LOG2_E;
    const double greatest = sink > most ? sink : most, shrink = exp(most - greatest);
    const double all = sink == nothing ? sum : sum * shrink + exp(sink - greatest);
    if (p->lse.dtype)
        *out_lse = greatest + log(all);
    return all / shrink;
}

/* Replaces any NaN by the same one, as in attention_finish.h. */
INLINE vf one_nan(vf v)
{
    return choose_f32(is_nan_f32(v), splat_f32(NAN), v);
}

/* Writes sixteen columns of a row, or the first n. */
static void write_columns(const tni_at_side *out, char *row, int64_t column, int64_t n, vf v)
{
    const vh half = narrow_bf16(v);
    const char *from = out->dtype == TN_F32 ? (const char *)&v : (const char *)&half;
    for (int64_t i = 0; i < LANES && i < n; i++)
        memcpy(row + (column + i) * out->element, from + i * out->size, (size_t)out->size);
}

/* Writes at most sixteen rows, multiplied by `by`; if that is below 0, writes 0 whatever the sums
 * are. */
static void write_rows(const tni_at_problem *p, char *const *to, int64_t rows, const float *values,
                       vf by)
{
    const int64_t columns = p->at->value_size;
    const bool together = p->out.element == 2 && p->out.dtype == TN_BF16;
    for (int64_t c = 0; c < columns; c += LANES) {
        vf x[LANES];
        UNROLLED for (int i = 0; i < LANES; i++) x[i] =
            one_nan(choose_f32(by < 0, (vf){0}, load_f32(values + (c + i) * SIDE) * by));
        transpose_f32(x);
        for (int64_t i = 0; i < rows; i++) {
            if (together && columns - c >= LANES)
                store_u16(to[i] + 2 * c, narrow_bf16(x[i]));
            else
                write_columns(&p->out, to[i], c, columns - c, x[i]);
        }
    }
}

static void finish(const tni_at_step *s)
{
    const tni_at_problem *p = s->problem;
    const float *most = s->state.most, *sums = s->state.sums;
    for (int64_t row = 0; row < s->rows; row += LANES) {
        const int64_t rows = least(LANES, s->rows - row);
        const float *values = (const float *)s->state.values + row % SIDE;
        float by[LANES] = {0};
        char *to[LANES];
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = s->row + row + i;
            const double sink = tni_at_sink(p, tni_at_head_of(p, s->unit, at));
            double lse, all = divisor(p, sink, (double)most[row + i], (double)sums[row + i], &lse);
            const float rounded = lse == lse ? (float)lse : NAN;
            by[i] = (float)(all == 0 ? -1 : 1 / (all * (1 - p->at->dropout)));
            to[i] = tni_at_row(p, s->unit, &p->out, at);
            if (p->lse.dtype)
                memcpy(tni_at_row(p, s->unit, &p->lse, at), &rounded, sizeof rounded);
        }
        write_rows(p, to, rows, values + row / SIDE * SIDE * s->state.value_row, load_f32(by));
    }
}

#endif
