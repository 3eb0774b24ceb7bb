/* Gradients of attention by their formula in long double, and how far roundings may take a kernel from them. */
#ifndef TENON_TEST_KERNELS_GRADIENTS_MAKE_H
#define TENON_TEST_KERNELS_GRADIENTS_MAKE_H

#include "attention_make.h"

/* What a key and a query have to do with each other: weight with dropout, and the score's derivative; and how far
 * roundings may take each, before it is summed. A slope is a difference, and the weight has the roundings of a score
 * and an lse: both may be far greater than what is left of them. */
typedef struct pair {
    long double weight, slope, weight_off, slope_off;
} pair;

/* An op's operands in doubles, which hold all their numbers, each in the order of its elements; those up to DOUT. */
typedef struct readings {
    double *of[TN_ATTENTION_BACKWARD_DQ];
    float *numbers; /* of dropout */
} readings;

enum { GRADIENTS = 3 };

/* dq, dk and dv by element, and how far a kernel may be off. */
typedef struct gradients {
    long double *want[GRADIENTS], *slack[GRADIENTS];
} gradients;

static inline readings readings_of(const call *c)
{
    static const int32_t which[] = {TN_ATTENTION_Q,   TN_ATTENTION_K,   TN_ATTENTION_V,
                                    TN_ATTENTION_OUT, TN_ATTENTION_LSE, TN_ATTENTION_BACKWARD_DOUT};
    readings r = {.numbers = dropout_numbers(TN_PARAMS(&c->op, attention))};
    for (size_t n = 0; n < sizeof which / sizeof which[0]; n++) {
        const operand *o = &c->o[which[n]];
        const int64_t count = elements_of(&o->layout);
        double *to = r.of[which[n]] = malloc((size_t)(count + 1) * sizeof *to);
        assert_non_null(to);
        for (int64_t e = 0; e < count; e++)
            to[e] = (double)value_at(o, e, 0);
    }
    return r;
}

static inline void readings_drop(readings *r)
{
    for (int32_t o = 0; o < TN_ATTENTION_BACKWARD_DQ; o++)
        free(r->of[o]);
    free(r->numbers);
}

static inline const double *query_row(const call *c, const readings *r, int32_t which,
                                      const head *at, int64_t i)
{
    return r->of[which] + query_index(c, which, at, i, 0);
}

static inline const double *key_row(const call *c, const readings *r, int32_t which, const head *at,
                                    int64_t j)
{
    return r->of[which] + key_index(c, which, at, j, 0);
}

/* Of a query and a key that it sees. `u` is the rounding of one step. What is off by so much: a score by its terms and
 * by lse, with exp; the softcap's derivative by the product's; dout . v - dout . out by its terms. Weights that are
 * less than the least a kernel's numbers may be are none. */
static inline pair pair_of(const call *c, const head *at, int64_t i, int64_t j, const readings *r,
                           long double u)
{
    const tn_attention_op *op = TN_PARAMS(&c->op, attention);
    const double *dout = query_row(c, r, TN_ATTENTION_BACKWARD_DOUT, at, i);
    const double *out = query_row(c, r, TN_ATTENTION_OUT, at, i);
    const double *value = key_row(c, r, TN_ATTENTION_V, at, j);
    const long double lse = query_row(c, r, TN_ATTENTION_LSE, at, i)[0];
    const long double keeps = op->dropout > 0 ? kept(op, r->numbers, at, i, j) : 1;
    const long double scale = op->scale, cap = op->softcap;
    const long double least = u > 0x1p-40L ? 0x1p-120L : 0x1p-1000L;
    const score_parts s = score_of(c, at, i, j, query_row(c, r, TN_ATTENTION_Q, at, i),
                                   key_row(c, r, TN_ATTENTION_K, at, j));
    const long double weight = expl(s.value - lse), off = u * (long double)(op->size + 4) * s.terms;
    long double along = 0, delta = 0, terms = 0, bend = 1, bend_off = 0;
    long double score_off = off + u * (4 * (fabsl(s.value) + fabsl(lse)) + 16);
    if (cap > 0) {
        const long double part = tanhl(s.product / cap);
        bend = 1 - part * part;
        bend_off = 8 * u + 2 * fabsl(part) * bend * off / cap;
        score_off += 8 * u * (1 + cap);
    }
    for (int64_t d = 0; d < op->value_size; d++) {
        delta += (long double)dout[d] * out[d];
        along += (long double)dout[d] * value[d];
        terms += fabsl((long double)dout[d]) *
                 (fabsl((long double)out[d]) + keeps * fabsl((long double)value[d]));
    }
    const long double rest = keeps * along - delta;
    const long double rest_off = u * (long double)(op->value_size + 4) * terms;
    const long double slope_off =
        weight * ((bend * score_off + bend_off) * fabsl(rest) + bend * rest_off) +
        least * (1 + fabsl(rest));
    return (pair){.weight = keeps * weight,
                  .slope = scale * bend * weight * rest,
                  .weight_off = keeps * (weight * score_off + least),
                  .slope_off = fabsl(scale) * slope_off};
}

/* A gradient's row, from element `first` on, += by * row; `by` may be off by `off`. */
static inline void gradient_add(const gradients *g, int32_t which, int64_t first, long double by,
                                long double off, const double *row, int64_t size)
{
    long double *want = g->want[which - TN_ATTENTION_BACKWARD_DQ] + first;
    long double *slack = g->slack[which - TN_ATTENTION_BACKWARD_DQ] + first;
    for (int64_t d = 0; d < size; d++) {
        want[d] += by * row[d];
        slack[d] += off * fabsl((long double)row[d]);
    }
}

/* The parts of one pair; each sum's own roundings are as many as it has terms. */
static inline void gradients_add(const call *c, const head *at, int64_t i, int64_t j,
                                 const readings *r, long double u, const gradients *to)
{
    const tn_attention_op *op = TN_PARAMS(&c->op, attention);
    const pair p = pair_of(c, at, i, j, r, u);
    const long double of_query = u * (long double)(op->keys + 4);
    const long double of_key = u * (long double)(op->queries * (op->heads / op->groups) + 4);
    gradient_add(to, TN_ATTENTION_BACKWARD_DQ, query_index(c, TN_ATTENTION_BACKWARD_DQ, at, i, 0),
                 p.slope, p.slope_off + of_query * fabsl(p.slope),
                 key_row(c, r, TN_ATTENTION_K, at, j), op->size);
    gradient_add(to, TN_ATTENTION_BACKWARD_DK, key_index(c, TN_ATTENTION_BACKWARD_DK, at, j, 0),
                 p.slope, p.slope_off + of_key * fabsl(p.slope),
                 query_row(c, r, TN_ATTENTION_Q, at, i), op->size);
    gradient_add(to, TN_ATTENTION_BACKWARD_DV, key_index(c, TN_ATTENTION_BACKWARD_DV, at, j, 0),
                 p.weight, p.weight_off + of_key * p.weight,
                 query_row(c, r, TN_ATTENTION_BACKWARD_DOUT, at, i), op->value_size);
}

/* All gradients of a call whose roundings are `u` each. */
static inline gradients gradients_of(const call *c, long double u)
{
    const tn_attention_op *op = TN_PARAMS(&c->op, attention);
    readings r = readings_of(c);
    gradients g;
    for (int n = 0; n < GRADIENTS; n++) {
        const size_t count = (size_t)elements_of(&c->o[TN_ATTENTION_BACKWARD_DQ + n].layout) + 1;
        g.want[n] = calloc(count, sizeof *g.want[n]);
        g.slack[n] = calloc(count, sizeof *g.slack[n]);
        assert_true(g.want[n] && g.slack[n]);
    }
    for (int64_t n = 0; n < op->batch * op->heads; n++) {
        const head in = head_of(c, n / op->heads, n % op->heads);
        for (int64_t e = 0; e < op->queries * op->keys; e++) {
            if (is_seen(c, &in, e / op->keys, e % op->keys))
                gradients_add(c, &in, e / op->keys, e % op->keys, &r, u, &g);
        }
    }
    readings_drop(&r);
    return g;
}

static inline void gradients_drop(gradients *g)
{
    for (int n = 0; n < GRADIENTS; n++) {
        free(g->want[n]);
        free(g->slack[n]);
    }
}

#endif
