/* Error bounds of attention-quantized, from a second evaluation in double.
 *
 * Every rounding to a format of few bits is evaluated for an interval: the exact number, plus and
 * minus the error that f32 arithmetic may have made of it. Where both ends round to the same number,
 * there is no error. Elsewhere, the difference of the two counts. So the bound is about as small as
 * that of attention, except for the few elements that lie near the middle of two numbers.
 *
 * With u and g(n) of bounds.h, s a score, and D the error of m, which is 0 for weights of f32:
 *
 *     mean of k      (g(keys) + 2) u mean|k|
 *     integers       k': the error of the mean and 2 u (|k| + |mean|), all divided by the scale; and
 *                    those of the scale and the division, 4 u each
 *     score          d = scale sq sk times the flips of q^ and k^, plus (8 u + errors of sq, sk) |s|
 *     weight         exp(s - m) with an error of d + D + 4 u (|s| + |m|) + (16 + 2 |s - m|) u, rounded
 *     exp(m - M)     D + 4 u (|m| + |M|) + (8 + 2 |m - M|) u, relative; an error of M cancels
 *     out            errors of the numerator and the denominator, and g(keys) u of each
 *     lse            sum of p (exp(d + (24 + 2 |s - M|) u) - 1) + g(keys) u + 8 u |M|; plus |scale| times
 *                    the errors of the mean times |q|, and (g(size) + 4) u sum |q mean| */
#include "attention_quantized.h"

#include "base/alloc.h"
#include "op/bounds.h"
#include "tenon/module/attention.h"

#include <float.h>

/* A rounded number with its largest error. */
typedef struct rough {
    double value, error;
} rough;

/* A key for the current query. */
typedef struct pair {
    double score, error; /* score -infinity: not seen */
} pair;

/* A column of out for the current query: sums over keys. */
typedef struct column {
    double sum, sizes, errors;
} column;

typedef struct rows {
    const tni_bounds *bounds; /* the owner */
    const tn_attention_quantized_op *op;
    const tn_attention_op *at;
    double u;
    int64_t b, group;          /* whose keys were read last; -1: none */
    rough *k;                  /* [keys][size]: integers */
    rough *scales;             /* [keys]: of the key's group */
    rough *mean;               /* [size] */
    rough *v;                  /* [keys][value size], with their scales */
    rough *q;                  /* [size]: integers of the current query */
    pair *pairs;               /* [keys] */
    column *columns;           /* [value size] */
    double total, total_error; /* the denominator of the current query */
    double lse_error;
} rows;

static double number_at(const rows *r, int32_t operand, int64_t b, int64_t h, int64_t i, int64_t c)
{
    const tni_place place = {{b, h, i, c}};
    return tni_bounds_input(r->bounds, operand, &place).re;
}

static double greater_of(double a, double b)
{
    return a > b ? a : b;
}

static double lesser_of(double a, double b)
{
    return a < b ? a : b;
}

/* Rounds to a format: f32 keeps the number. */
static double rounded(tn_dtype format, double x)
{
    unsigned char room[8];
    if (format == TN_U8 || format == TN_I8)
        return x < 0 ? -floor(0.5 - x) : floor(0.5 + x);
    if (format == TN_F32)
        return x;
    tni_element_write(format, (tni_number){x, 0}, room);
    return tni_element_read(format, room).re;
}

/* Rounds a number that is off by at most `error`, within plus and minus `limit`. */
static rough round_between(tn_dtype format, double x, double error, double limit)
{
    const double value = rounded(format, x);
    const double low = rounded(format, greater_of(x - error, -limit));
    const double high = rounded(format, lesser_of(x + error, limit));
    return (rough){value, greater_of(greater_of(high - value, value - low), 0)};
}

static rough mean_of_column(const rows *r, int64_t d)
{
    const double keys = (double)r->at->keys;
    double sum = 0, sizes = 0;
    if (r->op->smoothing == TN_SMOOTHING_NONE || r->at->keys == 0)
        return (rough){0, 0};
    for (int64_t j = 0; j < r->at->keys; j++) {
        const double k = number_at(r, TN_ATTENTION_QUANTIZED_K, r->b, r->group, j, d);
        sum += k;
        sizes += fabs(k);
    }
    return (rough){sum / keys, (tni_bounds_gathered(keys) + 2) * r->u * sizes / keys};
}

/* An element of K without its mean, and its error. */
static rough smooth_key(const rows *r, int64_t j, int64_t d)
{
    const double k = number_at(r, TN_ATTENTION_QUANTIZED_K, r->b, r->group, j, d);
    const rough *mean = &r->mean[d];
    return (rough){k - mean->value, mean->error + 2 * r->u * (fabs(k) + fabs(mean->value))};
}

/* Returns max / limit + 1e-7; the error is that of the greatest number divided by the limit, and of the division,
 * relative to the scale. */
static rough scale_of(double greatest, double error, double limit, double u)
{
    const double scale = greatest / limit + 1e-7;
    return (rough){scale, error / limit / scale + 4 * u};
}

/* Sets the scale of each key of the block that begins at key `first`. */
static void read_key_scales(rows *r, int64_t first)
{
    const int64_t most = first + TN_QUANTIZED_K_ROWS;
    const int64_t end = most < r->at->keys ? most : r->at->keys;
    const int64_t group = tn_quantized_k_group(r->op->scales, first);
    rough greatest[4] = {{0, 0}};
    for (int64_t j = first; j < end; j++) {
        rough *of = &greatest[tn_quantized_k_group(r->op->scales, j) - group];
        for (int64_t d = 0; d < r->at->size; d++) {
            const rough k = smooth_key(r, j, d);
            of->value = greater_of(of->value, fabs(k.value));
            of->error = greater_of(of->error, k.error);
        }
    }
    for (int64_t j = first; j < end; j++) {
        const rough *of = &greatest[tn_quantized_k_group(r->op->scales, j) - group];
        r->scales[j] = scale_of(of->value, of->error, 127, r->u);
    }
}

/* Divides by a scale and rounds to an integer of 8 bits. */
static rough quantize(rough x, const rough *scale, double u)
{
    const double quotient = x.value / scale->value;
    return round_between(TN_I8, quotient,
                         x.error / scale->value + fabs(quotient) * (scale->error + 4 * u), 127);
}

static void read_keys(rows *r)
{
    const tn_attention_op *at = r->at;
    for (int64_t d = 0; d < at->size; d++)
        r->mean[d] = mean_of_column(r, d);
    for (int64_t j = 0; j < at->keys; j++) {
        if (j % TN_QUANTIZED_K_ROWS == 0)
            read_key_scales(r, j);
        for (int64_t d = 0; d < at->size; d++)
            r->k[j * at->size + d] = quantize(smooth_key(r, j, d), &r->scales[j], r->u);
    }
}

/* Reads a column of V, rounded as the weights need it. */
static void read_column(rows *r, int64_t c)
{
    const tn_attention_op *at = r->at;
    const double limit = tn_quantized_value_limit(r->op->weights);
    double greatest = 0;
    for (int64_t j = 0; j < at->keys; j++)
        greatest = greater_of(greatest,
                              fabs(number_at(r, TN_ATTENTION_QUANTIZED_V, r->b, r->group, j, c)));
    const double scale = limit > 1 ? greatest / limit + 1e-7 : 1;
    for (int64_t j = 0; j < at->keys; j++) {
        const double x = number_at(r, TN_ATTENTION_QUANTIZED_V, r->b, r->group, j, c) / scale;
        const rough v = limit > 1 ? round_between(r->op->weights, x, 8 * r->u * fabs(x), limit)
                                  : (rough){rounded(r->op->weights, x), 0};
        r->v[j * at->value_size + c] = (rough){
            v.value * scale, (v.error + (limit > 1 ? 4 * r->u * fabs(v.value) : 0)) * scale};
    }
}

/* Reads K and V of a batch element and group, unless they were read last. */
static void enter_group(rows *r, int64_t b, int64_t group)
{
    if (r->b == b && r->group == group)
        return;
    r->b = b;
    r->group = group;
    read_keys(r);
    for (int64_t c = 0; c < r->at->value_size; c++)
        read_column(r, c);
}

/* Sets the integers of query i, and returns their scale. */
static rough read_query(rows *r, int64_t h, int64_t i)
{
    const int64_t group = tn_quantized_q_group(r->op->scales, i),
                  block = i - i % TN_QUANTIZED_Q_ROWS;
    double greatest = 0;
    for (int64_t n = block; n < block + TN_QUANTIZED_Q_ROWS && n < r->at->queries; n++) {
        for (int64_t d = 0; d < r->at->size && tn_quantized_q_group(r->op->scales, n) == group; d++)
            greatest =
                greater_of(greatest, fabs(number_at(r, TN_ATTENTION_QUANTIZED_Q, r->b, h, n, d)));
    }
    const rough scale = scale_of(greatest, 0, 127, r->u);
    for (int64_t d = 0; d < r->at->size; d++) {
        const rough x = {number_at(r, TN_ATTENTION_QUANTIZED_Q, r->b, h, i, d), 0};
        r->q[d] = quantize(x, &scale, r->u);
    }
    return scale;
}

static pair score_of(const rows *r, int64_t j, const rough *scale)
{
    const rough *k = r->k + j * r->at->size;
    const double by = r->at->scale * scale->value * r->scales[j].value;
    double sum = 0, flips = 0;
    for (int64_t d = 0; d < r->at->size; d++) {
        sum += r->q[d].value * k[d].value;
        flips += fabs(r->q[d].value) * k[d].error + fabs(k[d].value) * r->q[d].error +
                 r->q[d].error * k[d].error;
    }
    const double score = by * sum;
    return (pair){score,
                  fabs(by) * flips + fabs(score) * (scale->error + r->scales[j].error + 8 * r->u)};
}

/* The greatest score of the keys from `first` to `end`, and how far off it may be: a key whose score is
 * less by more than its error cannot change it. */
static pair greatest_of(const rows *r, int64_t first, int64_t end)
{
    double most = -(double)INFINITY, low = most, high = most;
    for (int64_t j = first; j < end && j < r->at->keys; j++) {
        const pair *p = &r->pairs[j];
        most = greater_of(most, p->score);
        low = greater_of(low, p->score - p->error);
        high = greater_of(high, p->score + p->error);
    }
    return (pair){most, most == -(double)INFINITY ? 0 : greater_of(high - most, most - low)};
}

/* Returns the rounded weight of a key relative to its step. */
static rough weight_of(const rows *r, const pair *p, const pair *step)
{
    const double limit = tn_quantized_weight_limit(r->op->weights), u = r->u;
    const double x = p->score - step->score;
    const double error = p->error + step->error + 4 * u * (fabs(p->score) + fabs(step->score)) +
                         (16 + 2 * fabs(x)) * u;
    const double weight = limit * exp(x), high = lesser_of(limit, limit * exp(x + error));
    const rough w = round_between(
        r->op->weights, weight, greater_of(high - weight, weight - limit * exp(x - error)), limit);
    return (rough){w.value / limit, w.error / limit + (double)FLT_MIN};
}

static void add_step(rows *r, int64_t first, const pair *all)
{
    const int64_t size = r->at->value_size;
    pair step = greatest_of(r, first, first + TN_QUANTIZED_STEP);
    if (step.score == -(double)INFINITY)
        return;
    if (r->op->weights == TN_F32) /* exp(s - m) exp(m - M) does not depend on m */
        step.error = 0;
    const double by = exp(step.score - all->score);
    const double error =
        2 * all->error +
        (4 * (fabs(step.score) + fabs(all->score)) + 8 + 2 * fabs(step.score - all->score)) * r->u;
    for (int64_t j = first; j < first + TN_QUANTIZED_STEP && j < r->at->keys; j++) {
        if (r->pairs[j].score == -(double)INFINITY)
            continue;
        const rough weight = weight_of(r, &r->pairs[j], &step);
        const double value = by * weight.value, off = by * weight.error + value * error;
        r->total += value;
        r->total_error += off;
        for (int64_t c = 0; c < size; c++) {
            const rough *v = &r->v[j * size + c];
            r->columns[c].sum += value * v->value;
            r->columns[c].sizes += value * fabs(v->value);
            r->columns[c].errors += off * (fabs(v->value) + v->error) + value * v->error;
        }
    }
}

/* Error of what smoothing adds to lse. */
static double offset_error(const rows *r, int64_t h, int64_t i)
{
    double sum = 0;
    for (int64_t d = 0; d < r->at->size; d++) {
        const double q = fabs(number_at(r, TN_ATTENTION_QUANTIZED_Q, r->b, h, i, d));
        sum += q * (r->mean[d].error +
                    (tni_bounds_gathered((double)r->at->size) + 4) * r->u * fabs(r->mean[d].value));
    }
    return fabs(r->at->scale) * sum;
}

static void judge_lse(rows *r, int64_t h, int64_t i, const pair *all)
{
    double sum = 0, errors = 0;
    for (int64_t j = 0; j < r->at->keys; j++) {
        const pair *p = &r->pairs[j];
        const double x = p->score - all->score;
        if (p->score == -(double)INFINITY)
            continue;
        sum += exp(x);
        errors += exp(x) * expm1(p->error + (24 + 2 * fabs(x)) * r->u);
    }
    r->lse_error = errors / sum + tni_bounds_gathered((double)r->at->keys) * r->u +
                   8 * r->u * fabs(all->score) + offset_error(r, h, i);
}

static void judge_query(rows *r, int64_t b, int64_t h, int64_t i)
{
    const tn_attention_op *at = r->at;
    int64_t first;
    const int64_t seen = tn_attention_seen(at, i, at->queries, at->keys, &first);
    enter_group(r, b, h / (at->heads / at->groups));
    const rough scale = read_query(r, h, i);
    for (int64_t j = 0; j < at->keys; j++)
        r->pairs[j] =
            j >= first && j < first + seen ? score_of(r, j, &scale) : (pair){-(double)INFINITY, 0};
    const pair all = greatest_of(r, 0, at->keys);
    memset(r->columns, 0, (size_t)(at->value_size + 1) * sizeof r->columns[0]);
    r->total = r->total_error = r->lse_error = 0;
    if (all.score == -(double)INFINITY)
        return;
    for (int64_t j = 0; j < at->keys; j += TN_QUANTIZED_STEP)
        add_step(r, j, &all);
    r->total_error += tni_bounds_gathered((double)at->keys) * r->u * r->total;
    judge_lse(r, h, i, &all);
}

double tni_attention_quantized_bound(tni_bounds *bounds, const tni_place *place, double size)
{
    rows *r = bounds->own;
    const bool lse = bounds->output == TN_ATTENTION_QUANTIZED_LSE;
    if (lse || place->index[3] == 0)
        judge_query(r, place->index[0], place->index[1], place->index[2]);
    if (lse)
        return r->lse_error > 0 ? r->lse_error + 4 * r->u * size : 0;
    if (!(r->total > 0))
        return 0;
    const column *of = &r->columns[place->index[3]];
    const double gathered = tni_bounds_gathered((double)r->at->keys) * r->u;
    const double errors = of->errors + gathered * of->sizes;
    const double rest = r->total - r->total_error;
    return rest > 0 ? (errors + fabs(of->sum / r->total) * r->total_error) / rest + 8 * r->u * size
                    : (double)INFINITY;
}

void tni_attention_quantized_bounds_release(tni_bounds *bounds)
{
    rows *r = bounds->own;
    if (!r)
        return;
    tni_release(r->k);
    tni_release(r->scales);
    tni_release(r->mean);
    tni_release(r->v);
    tni_release(r->q);
    tni_release(r->pairs);
    tni_release(r->columns);
    tni_release(r);
    bounds->own = NULL;
}

tn_status tni_attention_quantized_bounds_init(tni_bounds *bounds, tn_error *err)
{
    const tn_attention_quantized_op *op = TN_PARAMS(bounds->op, attention_quantized);
    const tn_attention_op *at = &op->at;
    const size_t keys = (size_t)at->keys + 1, size = (size_t)at->size + 1;
    const size_t values = (size_t)at->value_size + 1;
    rows *r = tni_alloc_zeroed(1, sizeof *r);
    bounds->own = r;
    if (!r)
        return tni_no_memory(err, "tn_check", "the bounds of a row");
    *r = (rows){.bounds = bounds, .op = op, .at = at, .u = bounds->work, .b = -1};
    r->k = tni_alloc_zeroed(keys, size * sizeof r->k[0]);
    r->scales = tni_alloc_zeroed(keys, sizeof r->scales[0]);
    r->mean = tni_alloc_zeroed(size, sizeof r->mean[0]);
    r->v = tni_alloc_zeroed(keys, values * sizeof r->v[0]);
    r->q = tni_alloc_zeroed(size, sizeof r->q[0]);
    r->pairs = tni_alloc_zeroed(keys, sizeof r->pairs[0]);
    r->columns = tni_alloc_zeroed(values, sizeof r->columns[0]);
    if (r->k && r->scales && r->mean && r->v && r->q && r->pairs && r->columns)
        return TN_OK;
    tni_attention_quantized_bounds_release(bounds);
    return tni_no_memory(err, "tn_check", "the bounds of a row");
}
