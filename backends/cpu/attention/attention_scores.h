/* From scores to weights, a row at a time. Include after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SCORES_H
#define TENON_BACKENDS_CPU_ATTENTION_SCORES_H

#include "attention_kernels.h"
#include "attention_weights.h"
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

#endif
