/* Steps of rows with packed keys. Include after a family (shared/family_f32_inc.h). */
#ifndef TENON_BACKENDS_CPU_ATTENTION_STEPS_H
#define TENON_BACKENDS_CPU_ATTENTION_STEPS_H

#include "attention_scores.h"

/* Weighs all scores of a row at once. */
static void F(weigh_whole)(const tni_at_problem *p, void *scores, const void *bias, int64_t keys,
                           void *most, void *sums)
{
    const NUMBERS is = F(numbers_of)(p);
    const REAL base = F(raise_row)(&is, scores, bias, keys, most);
    F(weigh_row)(scores, keys, F(factor_for)(scores, keys, is.factor, base), base, 0, sums);
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
