/* Attention of 16-bit floats by its formula, each step rounded to the dtype: what the criterion of FlashAttention's
 * tests holds errors against. */
#ifndef TENON_TEST_KERNELS_ATTENTION_PLAIN_H
#define TENON_TEST_KERNELS_ATTENTION_PLAIN_H

#include "attention_make.h"

#include "tenon/module/kernel.h"

static const int32_t written[] = {TN_ATTENTION_OUT, TN_ATTENTION_LSE};
enum { WRITTEN = 2 };

/* Another one with the same inputs, and outputs of its own; out is of that dtype, 0: the same. */
static inline call other_of(const call *c, tn_dtype out, int kind)
{
    call other = *c;
    for (int n = 0; n < WRITTEN; n++) {
        const tn_layout like = c->o[written[n]].layout;
        const tn_dtype dtype = out && written[n] == TN_ATTENTION_OUT ? out : like.dtype;
        if (like.dtype)
            other.o[written[n]] = make_poisoned(dtype, like.rank, like.shape, kind);
    }
    return other;
}

static inline void other_drop(call *other)
{
    for (int n = 0; n < WRITTEN; n++)
        drop(&other->o[written[n]]);
}

/* To nearest even with as many digits as the dtype has; exponents have no bounds. */
static inline double rounded(tn_dtype dtype, double x)
{
    const int digits = dtype == TN_BF16 ? 8 : 11;
    int exponent;
    if (x == 0 || is_nan(x) || is_inf(x))
        return x;
    (void)frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(x, digits - exponent)), exponent - digits);
}

/* The keys and values of one head, a query, and its scores. */
typedef struct desk {
    tn_dtype dtype;
    double *k, *v, *score, *q;
} desk;

static inline double *doubles(int64_t count)
{
    double *memory = malloc((size_t)(count + 1) * sizeof *memory);
    assert_non_null(memory);
    return memory;
}

static inline desk desk_of(const call *c)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    return (desk){.dtype = c->o[TN_ATTENTION_Q].layout.dtype,
                  .k = doubles(at->keys * at->size),
                  .v = doubles(at->keys * at->value_size),
                  .score = doubles(at->keys),
                  .q = doubles(at->size)};
}

static inline void desk_drop(desk *d)
{
    free(d->k);
    free(d->v);
    free(d->score);
    free(d->q);
}

static inline void read_head(const call *c, const head *in, desk *d)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    for (int64_t j = 0; j < in->keys; j++) {
        for (int64_t e = 0; e < at->size; e++)
            d->k[j * at->size + e] = (double)key_value(c, TN_ATTENTION_K, in, j, e);
        for (int64_t e = 0; e < at->value_size; e++)
            d->v[j * at->value_size + e] = (double)key_value(c, TN_ATTENTION_V, in, j, e);
    }
}

/* A score, each step to which is rounded; -infinity: not seen. */
static inline double plain_score(const call *c, const head *in, const desk *d, int64_t i, int64_t j)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    double x = 0;
    if (!is_seen(c, in, i, j))
        return -(double)INFINITY;
    for (int64_t e = 0; e < at->size; e++)
        x += d->q[e] * d->k[j * at->size + e];
    x = rounded(d->dtype, rounded(d->dtype, x) * at->scale);
    if (at->softcap != 0)
        x = rounded(d->dtype, at->softcap * tanh(rounded(d->dtype, x / at->softcap)));
    if (has(c, TN_ATTENTION_MASK) && c->o[TN_ATTENTION_MASK].layout.dtype != TN_BOOL)
        x = rounded(d->dtype, x + (double)mask_value(c, in, i, j));
    return x;
}

/* A row's scores become its weights. */
static inline void plain_weights(const call *c, const head *in, desk *d, int64_t i,
                                 const float *numbers)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    double sink = -(double)INFINITY, most, sum;
    if (has(c, TN_ATTENTION_SINKS))
        sink = (double)value_at(&c->o[TN_ATTENTION_SINKS], in->h, 0);
    most = sink;
    for (int64_t j = 0; j < in->keys; j++) {
        d->score[j] = plain_score(c, in, d, i, j);
        most = d->score[j] > most ? d->score[j] : most;
    }
    most = is_inf(most) ? 0 : most;
    sum = rounded(d->dtype, exp(sink - most));
    for (int64_t j = 0; j < in->keys; j++)
        sum += d->score[j] = rounded(d->dtype, exp(d->score[j] - most));
    for (int64_t j = 0; j < in->keys; j++) {
        d->score[j] = rounded(d->dtype, sum > 0 ? d->score[j] / sum : 0);
        if (at->dropout != 0)
            d->score[j] = rounded(d->dtype, d->score[j] * (double)kept(at, numbers, in, i, j));
    }
}

/* The greatest error of the plain evaluation; *out_most is the greatest of what is wanted. */
static inline double plain_error(const call *c, const call *want, double *out_most)
{
    const tn_attention_op *at = TN_PARAMS(&c->op, attention);
    float *numbers = at->dropout != 0 ? dropout_numbers(at) : NULL;
    desk d = desk_of(c);
    double error = 0;
    *out_most = 0;
    for (int64_t n = 0; n < at->batch * at->heads; n++) {
        const head in = head_of(c, n / at->heads, n % at->heads);
        read_head(c, &in, &d);
        for (int64_t i = 0; i < in.queries; i++) {
            for (int64_t e = 0; e < at->size; e++)
                d.q[e] = (double)query_value(c, TN_ATTENTION_Q, &in, i, e);
            plain_weights(c, &in, &d, i, numbers);
            for (int64_t e = 0; e < at->value_size; e++) {
                double x = 0, y = (double)query_value(want, TN_ATTENTION_OUT, &in, i, e);
                for (int64_t j = 0; j < in.keys; j++)
                    x += d.score[j] != 0 ? d.score[j] * d.v[j * at->value_size + e] : 0;
                error = fmax(error, fabs(rounded(d.dtype, x) - y));
                *out_most = fmax(*out_most, fabs(y));
            }
        }
    }
    desk_drop(&d);
    free(numbers);
    return error;
}

static inline void assert_out(const tn_kernel_row *row, const call *found, const call *want,
                              double most)
{
    for (int64_t e = 0; e < elements_of(&want->o[TN_ATTENTION_OUT].layout); e++) {
        const long double x = value_at(&found->o[TN_ATTENTION_OUT], e, 0);
        const long double y = value_at(&want->o[TN_ATTENTION_OUT], e, 0);
        if (!(is_nan(x) && is_nan(y)) && !(fabsl(x - y) <= (long double)most))
            fail_msg("%s: element %lld: %Lg is not %Lg, off by %Lg of %g", row->name, (long long)e,
                     x, y, x - y, most);
    }
}

#endif
