/* Steps of attention-backward. The lanes of a vector are rows, so the rows of a tile are keys.
 * Include after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_BACKWARD_STEPS_H
#define TENON_BACKENDS_CPU_ATTENTION_BACKWARD_STEPS_H

#include "tenon/module/op/attention.h"

/* Data shared by all pairs of a step, and the next vector of rows. */
typedef struct F(back) {
    NUMBERS is;
    const REAL *less, *delta, *bias, *keep;
} F(back);

/* Turns the products s = k . q and p = v . dout into a weight (0 if it was dropped) and a slope.
 * With a bias, both are 0 for a pair that is not visible. These zeros do not depend on the values
 * of s, p and lse. */
INLINE void F(back_pair)(const F(back) * b, int64_t i, VECTOR *s, VECTOR *p)
{
    const VECTOR nothing = F(splat)(-(REAL)INFINITY), zero = {0};
    const VECTOR add = b->bias ? F(load)(b->bias + i) : zero;
    const NUMBERS *is = &b->is;
    VECTOR x = *s, bend = F(splat)(1);
    if (is->natural)
        x *= F(splat)(is->scale);
    if (is->cap != 0) {
        const VECTOR t = F(tanh)(x * F(splat)(is->caps));
        x = t * F(splat)(is->cap);
        bend -= t * t;
    }
    if (b->bias)
        x += add;
    VECTOR weight = F(weight)(F(fma)(x, F(splat)(is->factor), F(load)(b->less + i))), along = *p;
    const VECTOR keep = b->keep ? F(load)(b->keep + i) : F(splat)(1);
    if (b->keep)
        along = F(choose)(keep == zero, zero, along * keep);
    VECTOR slope = weight * (along - F(load)(b->delta + i));
    if (is->cap != 0)
        slope *= bend;
    if (b->bias) {
        weight = F(choose)(add == nothing, zero, weight);
        slope = F(choose)(add == nothing, zero, slope);
    }
    *s = b->keep ? F(choose)(keep == zero, zero, weight * keep) : weight;
    *p = slope;
}

/* Turns scores into weights, and products of values into slopes, for one key. */
static void F(back_row)(const F(back) * b, int64_t rows, REAL *scores, const REAL *products,
                        REAL *slopes)
{
    for (int64_t i = 0; i < rows; i += WIDTH) {
        VECTOR s = F(load)(scores + i), p = F(load)(products + i);
        F(back_pair)(b, i, &s, &p);
        F(store)(scores + i, s);
        F(store)(slopes + i, p);
    }
}

/* Products of the rows of some keys with all panels of rows of the unit. */
static void F(back_products)(const char *from, int64_t size, const char *transposed, int64_t keys,
                             int64_t rows, REAL *to)
{
    const int64_t panel = F(k_panel)(size);
    F(tile)
    tile = {.a = (const REAL *)(const void *)from,
            .a_row = F(q_row)(size) / (int64_t)sizeof(REAL),
            .depth = size,
            .to_row = TNI_AT_SLOPE_ROW};
    for (int64_t i = 0; i < rows; i += COLUMNS) {
        tile.b = (const REAL *)(const void *)(transposed + i / COLUMNS * panel);
        tile.to = to + i;
        F(score_tiles)[keys - 1](&tile);
    }
}

/* to += a lines; `a` is keys by rows. */
static void F(back_add)(const REAL *a, int64_t keys, int64_t rows, const char *lines, int64_t panel,
                        int64_t columns, REAL *to, int64_t to_row)
{
    REAL ones[TILE_ROWS];
    F(tile)
    tile = {.a = a,
            .a_row = TNI_AT_SLOPE_ROW,
            .b_step = COLUMNS,
            .depth = rows,
            .to_row = to_row,
            .shrink = ones};
    for (int i = 0; i < TILE_ROWS; i++)
        ones[i] = 1;
    for (int64_t c = 0; c < columns; c += COLUMNS) {
        tile.b = (const REAL *)(const void *)(lines + c / COLUMNS * panel);
        tile.to = to + c;
        F(value_tiles)[columns - c > WIDTH][keys - 1](&tile);
    }
}

/* As back_add, with the same bits, if some of the lines are not finite: each key separately, one
 * run of rows that it counts for after the other. If `kept` is not NULL, a key does not count for
 * rows whose weight dropout dropped. */
static void F(back_add_counted)(const tni_at_back *s, const REAL *a, const REAL *kept,
                                const char *lines, int64_t columns, REAL *to, int64_t to_row)
{
    const REAL *bias = s->bias;
    for (int64_t j = 0; j < s->keys; j++) {
        const int64_t first = j * TNI_AT_SLOPE_ROW;
        uint8_t counted[TNI_AT_BACK_ROWS];
        for (int64_t i = 0; i < s->rows; i++)
            counted[i] =
                (!bias || bias[first + i] != -(REAL)INFINITY) && (!kept || kept[first + i] != 0);
        for (int64_t from = 0, end; from < s->rows; from = end) {
            for (end = from + 1; end < s->rows && counted[end] == counted[from];)
                end++;
            if (counted[from])
                F(back_add)
            (a + first + from, 1, end - from, lines + from * COLUMNS * (int64_t)sizeof(REAL),
             s->rows_panel, columns, to + j * to_row, to_row);
        }
    }
}

static void F(back_keys)(const tni_at_back *s)
{
    const tn_attention_op *at = s->problem->at;
    REAL *scores = (REAL *)(void *)s->room, *products = scores + TILE_ROWS * TNI_AT_SLOPE_ROW;
    REAL *slopes = s->slopes;
    F(back) b = {.is = F(numbers_of)(s->problem), .less = s->less, .delta = s->delta};
    F(back_products)(s->k, at->size, s->q_transposed, s->keys, s->rows, scores);
    F(back_products)(s->v, at->value_size, s->dout_transposed, s->keys, s->rows, products);
    for (int64_t j = 0; j < s->keys; j++) {
        const int64_t first = j * TNI_AT_SLOPE_ROW;
        b.bias = s->bias ? (const REAL *)s->bias + first : NULL;
        b.keep = s->keep ? (const REAL *)s->keep + first : NULL;
        F(back_row)(&b, s->rows, scores + first, products + first, slopes + first);
    }
    if (s->nonfinite && (s->bias || s->keep)) {
        F(back_add_counted)(s, scores, s->keep, s->dout_lines, at->value_size, s->dv, s->dv_row);
        F(back_add_counted)(s, slopes, NULL, s->q_lines, at->size, s->dk, s->dk_row);
    } else {
        F(back_add)
        (scores, s->keys, s->rows, s->dout_lines, s->rows_panel, at->value_size, s->dv, s->dv_row);
        F(back_add)
        (slopes, s->keys, s->rows, s->q_lines, s->rows_panel, at->size, s->dk, s->dk_row);
    }
}

static void F(back_rows)(const tni_at_back_rows *s)
{
    F(tile)
    tile = {.a = s->slopes, .a_row = TNI_AT_SLOPE_ROW, .depth = s->keys, .to_row = s->dq_row};
    for (int64_t c = 0; c < s->size; c += COLUMNS) {
        tile.b = (const REAL *)(const void *)(s->k_lines + c / COLUMNS * s->k_panel);
        tile.to = (REAL *)s->dq + c;
        F(transposed_tiles)[s->size - c > WIDTH][s->rows - 1](&tile);
    }
}

static void F(back_begin)(const tni_at_back_begin *job, void *out_less, void *out_delta)
{
    REAL *less = out_less, *delta = out_delta;
    const REAL nothing = -(REAL)INFINITY;
    double sum = 0;
    REAL x, y;
    for (int64_t d = 0; d < job->size; d++) {
        memcpy(&x, job->out + d * job->out_step, sizeof x);
        memcpy(&y, job->dout + d * job->dout_step, sizeof y);
        sum += (double)x * (double)y;
    }
    *delta = (REAL)sum;
    memcpy(&x, job->lse, sizeof x);
    *less = x == nothing ? nothing : (REAL)(-(double)x * UNIT);
}

static void F(back_write)(const void *from, double by, int64_t size, char *to, int64_t step)
{
    const REAL *sums = from;
    for (int64_t c = 0; c < size; c += WIDTH)
        F(row_put)(F(one_nan)(F(load)(sums + c) * F(splat)((REAL)by)), to, step, c, size - c);
}

const tni_at_back_set BACK_SET = {
    .rows = TILE_ROWS,
    .columns = COLUMNS,
    .real = sizeof(REAL),
    .room = 2 * TILE_ROWS * TNI_AT_SLOPE_ROW * sizeof(REAL),
    .row = F(q_row),
    .pack_rows = F(pack_rows),
    .transpose = F(pack_transposed),
    .lines = F(pack_lines),
    .begin_row = F(back_begin),
    .keys_step = F(back_keys),
    .rows_step = F(back_rows),
    .write = F(back_write),
};

#endif
