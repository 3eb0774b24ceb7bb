/* Steps of rows with packed keys. Include after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_STEPS_H
#define TENON_BACKENDS_CPU_ATTENTION_STEPS_H

#include "tenon/module/op/attention.h"

enum { F(SCORE_ROW) = TNI_AT_BLOCK_MOST + WIDTH }; /* rows do not share cache sets */

/* Constants shared by all rows of a step. */
typedef struct F(numbers) {
    REAL factor;    /* from scores to the units of weights */
    REAL scale;     /* of the products, if scores are natural */
    REAL cap, caps; /* softcap, and 1 / softcap; 0: none */
    bool natural;
} F(numbers);
#define NUMBERS F(numbers)

static NUMBERS F(numbers_of)(const tni_at_problem *p)
{
    const double scale = p->at->scale, cap = p->at->softcap;
    return (NUMBERS){.factor = (REAL)(p->natural ? UNIT : scale * UNIT),
                     .scale = (REAL)scale,
                     .cap = (REAL)cap,
                     .caps = (REAL)(cap != 0 ? 1 / cap : 0),
                     .natural = p->natural};
}

/* Turns products into scores; -infinity where they do not count. */
INLINE VECTOR F(dress)(const NUMBERS *is, VECTOR x, const REAL *bias)
{
    const VECTOR nothing = F(splat)(-(REAL)INFINITY);
    if (is->natural)
        x *= F(splat)(is->scale);
    if (is->cap != 0)
        x = F(tanh)(x * F(splat)(is->caps)) * F(splat)(is->cap);
    if (bias) {
        const VECTOR add = F(load)(bias);
        x = F(choose)(add == nothing, nothing, x + add);
    }
    return x;
}

/* Computes a row's scores, and returns the greatest of them. */
static REAL F(dress_row)(const NUMBERS *is, REAL *scores, const REAL *bias, int64_t keys)
{
    VECTOR most = F(splat)(-(REAL)INFINITY);
    for (int64_t j = 0; j < keys; j += WIDTH) {
        const VECTOR x = F(dress)(is, F(load)(scores + j), bias ? bias + j : NULL);
        F(store)(scores + j, x);
        most = F(greater)(x, most);
    }
    return F(most)(most);
}

static REAL F(greatest)(const REAL *scores, int64_t keys)
{
    VECTOR a = F(load)(scores), b = F(load)(scores + WIDTH);
    for (int64_t j = COLUMNS; j < keys; j += COLUMNS) {
        a = F(greater)(F(load)(scores + j), a);
        b = F(greater)(F(load)(scores + j + WIDTH), b);
    }
    return F(most)(F(greater)(b, a));
}

/* FAR: from here on, adjacent numbers in the units of weights are at least 1 apart, so that
 * rounding the greatest score changes its weight. MOST: the greatest finite number. */
#define FAR  (sizeof(REAL) == sizeof(float) ? (REAL)0x1p23 : (REAL)0x1p52)
#define MOST (sizeof(REAL) == sizeof(float) ? (REAL)FLT_MAX : (REAL)DBL_MAX)

/* Converts scores to the units of weights, rounded; finite scores stay finite. */
INLINE VECTOR F(measure)(VECTOR x, REAL factor)
{
    const VECTOR most = F(splat)(MOST), by = x * F(splat)(factor);
    const VECTOR within = F(choose)(by > most, most, F(choose)(by < -most, -most, by));
    return F(choose)((x > most) | (x < -most), by, within);
}

static REAL F(measure_one)(REAL x, REAL factor)
{
    const REAL by = x * factor;
    if (x > MOST || x < -MOST)
        return by;
    return by > MOST ? MOST : by < -MOST ? -MOST : by;
}

/* Returns the factor for the scores in weigh_row: `factor`. If `base` is far from 0, scores are
 * first converted to the units of weights, and the factor is 1: so the greatest one has weight 1
 * whatever it was rounded to. */
static REAL F(factor_for)(REAL *scores, int64_t keys, REAL factor, REAL base)
{
    if (base < FAR && base > -FAR)
        return factor;
    for (int64_t j = 0; j < keys; j += WIDTH)
        F(store)(scores + j, F(measure)(F(load)(scores + j), factor));
    return 1;
}

/* Raises the greatest score to `found`, in the units of weights. Returns the base that is
 * subtracted from scores: the greatest score, or 0 if none exists. */
INLINE REAL F(raise)(REAL *most, REAL found)
{
    const REAL nothing = -(REAL)INFINITY;
    *most = found > *most ? found : *most;
    return *most == nothing ? 0 : *most;
}

/* Turns a row's scores into weights, and adds them to its sums. */
static void F(weigh_row)(REAL *scores, int64_t keys, REAL factor, REAL base, REAL shrink,
                         REAL *sums)
{
    const VECTOR by = F(splat)(factor), less = F(splat)(-base);
    VECTOR a = {0}, b = {0};
    for (int64_t j = 0; j < keys; j += COLUMNS) {
        const VECTOR x = F(weight)(F(fma)(F(load)(scores + j), by, less));
        const VECTOR y = F(weight)(F(fma)(F(load)(scores + j + WIDTH), by, less));
        F(store)(scores + j, x);
        F(store)(scores + j + WIDTH, y);
        a += x;
        b += y;
    }
    F(store)(sums, F(fma)(F(load)(sums), F(splat)(shrink), a + b));
}

/* Raises a row's greatest score to that of more keys. Returns the base that is subtracted from the
 * scores. */
static REAL F(raise_row)(const NUMBERS *is, REAL *scores, const REAL *bias, int64_t keys,
                         REAL *most)
{
    const REAL found =
        bias || is->natural ? F(dress_row)(is, scores, bias, keys) : F(greatest)(scores, keys);
    return F(raise)(most, F(measure_one)(found, is->factor));
}

/* Weighs all scores of a row at once. */
static void F(weigh_whole)(const tni_at_problem *p, void *scores, const void *bias, int64_t keys,
                           void *most, void *sums)
{
    const NUMBERS is = F(numbers_of)(p);
    const REAL base = F(raise_row)(&is, scores, bias, keys, most);
    F(weigh_row)(scores, keys, F(factor_for)(scores, keys, is.factor, base), base, 0, sums);
}

/* Weighs all rows; `shrink` has whole vectors. */
static void F(weigh)(const tni_at_step *s, const NUMBERS *is, REAL *scores, REAL *shrink)
{
    REAL *most = s->state.most, *sums = s->state.sums;
    REAL base[TNI_AT_ROWS_MOST];
    for (int64_t r = 0; r < s->rows; r++) {
        const REAL *bias = s->bias ? (const REAL *)s->bias + r * s->bias_row : NULL;
        const REAL before = most[r];
        base[r] = F(raise_row)(is, scores + r * F(SCORE_ROW), bias, s->keys, &most[r]);
        shrink[r] = before - base[r];
    }
    for (int64_t r = 0; r < s->rows; r += WIDTH)
        F(store)(shrink + r, F(weight)(F(load)(shrink + r)));
    for (int64_t r = 0; r < s->rows; r++) {
        REAL *row = scores + r * F(SCORE_ROW);
        const REAL factor = F(factor_for)(row, s->keys, is->factor, base[r]);
        F(weigh_row)(row, s->keys, factor, base[r], shrink[r], sums + r * WIDTH);
    }
}

/* Sets weights that dropout drops to 0. */
static void F(drop)(const tni_at_step *s, REAL *scores)
{
    uint8_t keeps[TNI_AT_BLOCK_MOST];
    for (int64_t r = 0; r < s->rows; r++) {
        REAL *row = scores + r * F(SCORE_ROW);
        tni_at_keeps(s->problem, s->unit, s->row + r, s->key, s->keys, keeps);
        for (int64_t j = 0; j < s->keys; j++)
            row[j] = keeps[j] ? row[j] : 0;
    }
}

/* Finds whether each key of the step counts for a row: it is visible, and dropout keeps its weight.
 * A key that does not count must not affect the row, not even with a weight of 0. */
static void F(find_counted)(const tni_at_step *s, int64_t r, uint8_t *out)
{
    const REAL *bias = s->bias ? (const REAL *)s->bias + r * s->bias_row : NULL;
    if (s->problem->at->dropout != 0)
        tni_at_keeps(s->problem, s->unit, s->row + r, s->key, s->keys, out);
    else
        memset(out, 1, (size_t)s->keys);
    for (int64_t j = 0; bias && j < s->keys; j++)
        out[j] = out[j] && bias[j] != -(REAL)INFINITY;
}

/* Adds the values of rows `row` to row + rows - 1, with the weights of keys `from` to `to` of the
 * step. */
static void F(add_run)(const tni_at_step *s, const REAL *scores, const REAL *shrink, int64_t row,
                       int64_t rows, int64_t from, int64_t to)
{
    const int64_t columns = s->problem->at->value_size;
    F(tile)
    tile = {.a = scores + row * F(SCORE_ROW) + from,
            .a_row = F(SCORE_ROW),
            .b_step = s->v_line / (int64_t)sizeof(REAL),
            .depth = to - from,
            .to_row = s->state.value_row,
            .shrink = shrink};
    for (int64_t c = 0; c < columns; c += COLUMNS) {
        tile.b = (const REAL *)(const void *)(s->v + c / COLUMNS * s->v_panel + from * s->v_line);
        tile.to = (REAL *)s->state.values + row * s->state.value_row + c;
        F(value_tiles)[columns - c > WIDTH][rows - 1](&tile);
    }
}

/* Number of keys of the step that exist. */
static int64_t F(keys_there)(const tni_at_step *s)
{
    return s->key + s->keys < s->unit->to ? s->keys : s->unit->to - s->key;
}

static void F(add_values)(const tni_at_step *s, const REAL *scores, const REAL *shrink)
{
    F(add_run)(s, scores, shrink, 0, s->rows, 0, F(keys_there)(s));
}

/* As add_values, with the same bits, if some values are not finite: each row separately, one run of
 * keys that count after the other. */
static void F(add_counted)(const tni_at_step *s, const REAL *scores, const REAL *shrink)
{
    const REAL one = 1;
    const int64_t keys = F(keys_there)(s);
    uint8_t counted[TNI_AT_BLOCK_MOST];
    for (int64_t r = 0; r < s->rows; r++) {
        F(find_counted)(s, r, counted);
        F(add_run)(s, scores, shrink + r, r, 1, 0, 0);
        for (int64_t from = 0, to; from < keys; from = to) {
            for (to = from + 1; to < keys && counted[to] == counted[from];)
                to++;
            if (counted[from])
                F(add_run)(s, scores, &one, r, 1, from, to);
        }
    }
}

static void F(step)(const tni_at_step *s)
{
    const tn_attention_op *at = s->problem->at;
    const NUMBERS is = F(numbers_of)(s->problem);
    const int64_t panel = F(k_panel)(at->size);
    _Alignas(64) REAL shrink[TNI_AT_ROWS_MOST];
    REAL *scores = (REAL *)(void *)s->room;
    F(tile)
    tile = {.a = (const REAL *)(const void *)s->q,
            .a_row = s->q_row / (int64_t)sizeof(REAL),
            .depth = at->size,
            .to_row = F(SCORE_ROW)};
    for (int64_t j = 0; j < s->keys; j += COLUMNS) {
        tile.b = (const REAL *)(const void *)(s->k + j / COLUMNS * panel);
        tile.to = scores + j;
        F(score_tiles)[s->rows - 1](&tile);
    }
    F(weigh)(s, &is, scores, shrink);
    if (at->dropout != 0)
        F(drop)(s, scores);
    if (s->nonfinite && (s->bias || at->dropout != 0))
        F(add_counted)(s, scores, shrink);
    else
        F(add_values)(s, scores, shrink);
}

#endif
