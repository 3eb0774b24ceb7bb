/* The pipeline of items: scores are multiplied, become weights, and are multiplied with values. The
 * next item's scores and the last item's values are multiplied in pieces between the lines of the
 * current item's weights, so that a processor with separate units for products keeps both busy.
 *
 * The includer must define multiply_scores and multiply_values, each of which does one more square
 * of `work`. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_PIPE_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_PIPE_H

#include "tenon/module/op/attention.h"

enum { LINES = 4 }; /* of weights, between two pieces */

typedef struct pipe {
    const tni_at_step *s;
    numbers is;
    work work;
    int64_t row, key; /* start of the next item */
    int64_t count;    /* of items so far */
} pipe;

static pipe pipe_of(const tni_at_step *s)
{
    const tn_attention_op *at = s->problem->at;
    return (pipe){.s = s,
                  .is = numbers_of(s->problem),
                  .work = {.steps = squares(at->size),
                           .parts = squares(at->value_size),
                           .v_panel = s->v_panel},
                  .key = s->key};
}

static bool all_seen(const tni_at_step *s, const item *it)
{
    return tni_at_all_seen(s->problem, s->unit, s->row + it->row, it->rows, it->key, it->keys);
}

/* Makes the item of `rows` rows of the step from `row` on, with keys from `key` up to `end`. */
static void make_item(pipe *p, int64_t row, int64_t rows, int64_t key, int64_t end, item *out)
{
    const tni_at_step *s = p->s;
    const int64_t odd = p->count++ % 2;
    *out =
        (item){.row = row, .rows = rows, .key = key, .keys = (end - key + SIDE - 1) / SIDE * SIDE};
    out->q = s->q + row * p->work.steps * 64;
    out->k = s->k + (key - s->key) * p->work.steps * 64;
    out->v = s->v + (key - s->key) * 64;
    out->most = (float *)s->state.most + row;
    out->sums = (float *)s->state.sums + row;
    out->values = (float *)s->state.values + row * s->state.value_row;
    out->scores = (float *)(void *)(s->room + odd * SCORES_BYTES);
    out->weights = s->room + 2 * SCORES_BYTES + odd * WEIGHTS_BYTES;
}

/* Makes the next item of the step; returns false if none exists. */
static bool next_item(pipe *p, item *out)
{
    const tni_at_step *s = p->s;
    for (; p->row < s->rows; p->row += SIDE, p->key = s->key) {
        const int64_t rows = least(SIDE, s->rows - p->row);
        int64_t from, to;
        tni_at_reach(s->problem, s->unit, s->row + p->row, rows, &from, &to);
        to = least(to, s->key + s->keys);
        if (p->key < from)
            p->key = from / SIDE * SIDE;
        if (p->key >= to)
            continue;
        const int64_t key = p->key, end = least(to, (key / ITEM_KEYS + 1) * ITEM_KEYS);
        p->key = (key / ITEM_KEYS + 1) * ITEM_KEYS;
        make_item(p, p->row, rows, key, end, out);
        return true;
    }
    return false;
}

static uint16_t *weight_at(const item *it, int64_t row, int64_t key)
{
    return (uint16_t *)(void *)(it->weights + key / 2 * (SIDE * 4) + row * 4 + key % 2 * 2);
}

/* Sets weights that dropout drops to 0. */
static void drop(const tni_at_step *s, const item *it)
{
    uint8_t keeps[ITEM_KEYS];
    for (int64_t r = 0; r < it->rows; r++) {
        tni_at_keeps(s->problem, s->unit, s->row + it->row + r, it->key, it->keys, keeps);
        for (int64_t key = 0; key < it->keys; key++) {
            if (!keeps[key])
                *weight_at(it, r, key) = 0;
        }
    }
}

/* Adds a non-finite value to a column, for the rows that the key counts for. */
static void add_value(const tni_at_step *s, const item *it, int64_t key, int64_t column,
                      float value)
{
    for (int64_t r = 0; r < it->rows; r++) {
        const uint32_t bits = (uint32_t)*weight_at(it, r, key - it->key) << 16;
        float weight;
        memcpy(&weight, &bits, sizeof weight);
        if (tni_at_counts(s->problem, s->unit, s->row + it->row + r, key))
            it->values[column * SIDE + r] += weight * value;
    }
}

/* Values that are not finite are 0 in their panels, since they must not be multiplied by the
 * weights of keys that do not count. Here they are added to an item's sums, for the rows that their
 * keys count for. */
static void add_nonfinite(const tni_at_step *s, const item *it)
{
    const int64_t to = least(it->key + it->keys, s->unit->to);
    int64_t key = most(it->key, s->unit->from), column = 0;
    double value;
    for (; tni_at_next_nonfinite(s->problem, s->unit, to, &key, &column, &value); column++)
        add_value(s, it, key, column, (float)value);
}

/* Does one more piece of the remaining work. */
INLINE void advance(work *w)
{
    if (w->next)
        multiply_scores(w);
    else if (w->last)
        multiply_values(w);
}

static int64_t pieces_of(const work *w)
{
    const int64_t scores = w->next ? w->next->keys / SIDE * w->steps : 0;
    return scores + (w->last ? w->last->keys / SIDE * w->parts : 0);
}

static void finish_work(work *w)
{
    while (w->next || w->last)
        advance(w);
}

/* Computes an item's weights, and all of the work in between. */
static void weigh(const item *it, const bases *b, work *w)
{
    const int64_t lines = it->keys / 2, pieces = pieces_of(w) * LINES;
    vf sums[2];
    HALVES sums[h] = load_f32(it->sums + h * LANES) * b->shrink[h];
    for (int64_t line = 0, due = 0; line < lines; line += LINES) {
        UNROLLED for (int i = 0; i < LINES; i++) weigh_line(
            it->scores + (line + i) * 2 * SIDE, b, sums, it->weights + (line + i) * SIDE * 4);
        for (due += pieces; due >= lines; due -= lines)
            advance(w);
    }
    HALVES store_f32(it->sums + h * LANES, sums[h]);
    finish_work(w);
}

static void weigh_item(pipe *p, const item *it)
{
    const tni_at_step *s = p->s;
    vf found[2];
    bases b;
    if (p->is.natural || s->bias || !all_seen(s, it)) {
        view v;
        look(s, it->row, it->rows, it->key, it->keys, &v);
        dress_scores(&p->is, &v, it->keys, it->scores);
    }
    find_greatest(it->scores, it->keys, found);
    raise(it->most, found, p->is.factor, &b);
    measure_far(it->scores, it->keys, p->is.factor, &b);
    weigh(it, &b, &p->work);
    if (s->problem->at->dropout != 0)
        drop(s, it);
    if (b.grown)
        shrink_values(&b, p->work.parts * SIDE, it->values);
    if (s->nonfinite)
        add_nonfinite(s, it);
}

/* Subnormals are flushed to 0, as in the products, so that weights that underflow take no extra
 * time. */
static void step(const tni_at_step *s)
{
    const unsigned mode = _mm_getcsr();
    pipe p = pipe_of(s);
    item items[3];
    bool more = next_item(&p, &items[0]);
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON | 0x40);
    p.work.next = more ? &items[0] : NULL;
    finish_work(&p.work);
    for (int64_t n = 0; more; n++) {
        item *next = &items[(n + 1) % 3];
        more = next_item(&p, next);
        p.work.next = more ? next : NULL;
        weigh_item(&p, &items[n % 3]);
        p.work.last = &items[n % 3];
    }
    finish_work(&p.work);
    _mm_setcsr(mode);
}

#endif
