/* attention-quantized: first, for each batch element and group, the integers of K and the rounded V,
 * in the workspace; then each query on its own, one key after the other: its scores, the weights
 * relative to the greatest of each step, and the sums, in long double. */
#include "ref_elementwise.h"

#include "tenon/module/attention.h"
#include "tenon/module/op/attention_quantized.h"

#include <math.h>
#include <stdbool.h>

/* A batch element's group in the workspace. */
typedef struct unit {
    double *mean;    /* [size] */
    double *scales;  /* [keys] */
    double *values;  /* [keys][value size] */
    double *finite;  /* [1]: 0, or NaN if K or V is not finite */
    int8_t *numbers; /* [keys][size] */
} unit;

typedef struct job {
    const tn_run *run;
    const tn_attention_quantized_op *op;
    const tn_attention_op *at;
    const tni_ref_element *element[TN_ATTENTION_QUANTIZED_OPERANDS];
    const tni_ref_element *format; /* of the weights */
    int64_t slots;
    long double *scores; /* in the workspace: for each slot, of all keys of a query */
    double *units;       /* of each unit */
    double *scales;      /* of each query; NaN or infinity if those that share it are not finite */
    int8_t *k, *q;       /* integers of all keys, and of all queries */
} job;

static int64_t unit_doubles(const tn_attention_op *at)
{
    return at->size + at->keys * (1 + at->value_size) + 1;
}

/* Sets the addresses in the workspace. Returns its size. */
static uint64_t lay_out(job *j, char *workspace)
{
    const tn_attention_op *at = j->at;
    const int64_t units = at->batch * at->groups, rows = at->batch * at->heads * at->queries;
    const int64_t scores = j->slots * at->keys * (int64_t)sizeof(long double);
    const int64_t doubles = units * unit_doubles(at);
    const int64_t k = scores + (doubles + rows) * (int64_t)sizeof(double);
    if (workspace) {
        j->scores = (long double *)(void *)workspace;
        j->units = (double *)(void *)(workspace + scores);
        j->scales = j->units + doubles;
        j->k = (int8_t *)workspace + k;
        j->q = j->k + units * at->keys * at->size;
    }
    return (uint64_t)(k + (units * at->keys + rows) * at->size);
}

static unit unit_at(const job *j, int64_t b, int64_t group)
{
    const tn_attention_op *at = j->at;
    const int64_t n = b * at->groups + group;
    double *first = j->units + n * unit_doubles(at);
    return (unit){.mean = first,
                  .scales = first + at->size,
                  .values = first + at->size + at->keys,
                  .finite = first + unit_doubles(at) - 1,
                  .numbers = j->k + n * at->keys * at->size};
}

static double number_at(const job *j, int32_t operand, int64_t b, int64_t h, int64_t i, int64_t d)
{
    const int64_t *stride = j->run->op->operand[operand].stride;
    const char *first = tn_operand(j->run, operand);
    double value;
    first += (b * stride[0] + h * stride[1] + i * stride[2] + d * stride[3]) *
             j->element[operand]->bytes;
    j->element[operand]->read(first, 0, 1, &value);
    return value;
}

static void put_number(const job *j, int32_t operand, int64_t b, int64_t h, int64_t i, int64_t d,
                       double value)
{
    const tn_layout *layout = &j->run->op->operand[operand];
    char *first = tn_operand(j->run, operand);
    const int64_t at = b * layout->stride[0] + h * layout->stride[1] + i * layout->stride[2];
    if (!layout->dtype)
        return;
    first += (at + (layout->rank > 3 ? d * layout->stride[3] : 0)) * j->element[operand]->bytes;
    j->element[operand]->write(&value, 1, first, 0);
}

/* To the nearest integer, halves away from zero; NaN becomes 0. */
static double nearest_integer(double x)
{
    return x != x ? 0 : copysign(floor(fabs(x) + 0.5), x);
}

/* Rounds a number to the format of the weights. */
static double rounded(const job *j, double x)
{
    char room[8];
    if (j->op->weights == TN_U8 || j->op->weights == TN_I8)
        return nearest_integer(x);
    if (j->op->weights == TN_F32)
        return x;
    j->format->write(&x, 1, room, 0);
    j->format->read(room, 0, 1, &x);
    return x;
}

static double scale_of(double greatest, double limit)
{
    return greatest / limit + 1e-7;
}

/* Writes the means of the columns of K. */
static void write_means(const job *j, int64_t b, int64_t group, const unit *u)
{
    for (int64_t d = 0; d < j->at->size; d++) {
        long double sum = 0;
        for (int64_t key = 0; key < j->at->keys; key++)
            sum += number_at(j, TN_ATTENTION_QUANTIZED_K, b, group, key, d);
        u->mean[d] = j->op->smoothing == TN_SMOOTHING_NONE || j->at->keys == 0
                         ? 0
                         : (double)(sum / j->at->keys);
        *u->finite += sum - sum != 0 ? (double)NAN : 0;
    }
}

static double smooth_key(const job *j, int64_t b, int64_t group, int64_t key, int64_t d,
                         const unit *u)
{
    return number_at(j, TN_ATTENTION_QUANTIZED_K, b, group, key, d) - u->mean[d];
}

/* Writes the scales of the keys from `first` to `end`, which are in one block. */
static void write_scales(const job *j, int64_t b, int64_t group, int64_t first, int64_t end,
                         const unit *u)
{
    const int64_t before = tn_quantized_k_group(j->op->scales, first);
    double greatest[4] = {0};
    for (int64_t key = first; key < end; key++) {
        double *of = &greatest[tn_quantized_k_group(j->op->scales, key) - before];
        for (int64_t d = 0; d < j->at->size; d++)
            *of = fmax(*of, fabs(smooth_key(j, b, group, key, d, u)));
    }
    for (int64_t key = first; key < end; key++)
        u->scales[key] = scale_of(greatest[tn_quantized_k_group(j->op->scales, key) - before], 127);
}

static void write_keys(const job *j, int64_t b, int64_t group, const unit *u)
{
    const int64_t keys = j->at->keys, size = j->at->size;
    for (int64_t first = 0; first < keys; first += TN_QUANTIZED_K_ROWS)
        write_scales(j, b, group, first,
                     first + TN_QUANTIZED_K_ROWS < keys ? first + TN_QUANTIZED_K_ROWS : keys, u);
    for (int64_t n = 0; n < keys * size; n++)
        u->numbers[n] = (int8_t)nearest_integer(smooth_key(j, b, group, n / size, n % size, u) /
                                                u->scales[n / size]);
}

/* Writes V as the weights multiply it, with its scales. */
static void write_values(const job *j, int64_t b, int64_t group, const unit *u)
{
    const int limit = tn_quantized_value_limit(j->op->weights);
    const int64_t size = j->at->value_size;
    for (int64_t c = 0; c < size; c++) {
        double greatest = 0;
        for (int64_t key = 0; key < j->at->keys; key++) {
            const double v = number_at(j, TN_ATTENTION_QUANTIZED_V, b, group, key, c);
            *u->finite += v - v != 0 ? (double)NAN : 0;
            greatest = fmax(greatest, fabs(v));
        }
        const double scale = limit > 1 ? scale_of(greatest, limit) : 1;
        for (int64_t key = 0; key < j->at->keys; key++) {
            const double v = number_at(j, TN_ATTENTION_QUANTIZED_V, b, group, key, c);
            u->values[key * size + c] = rounded(j, v / scale) * scale;
            *u->finite += u->values[key * size + c] * 0;
        }
    }
}

static void prepare_units(void *user, int64_t first, int64_t end)
{
    const job *j = user;
    for (int64_t n = first; n < end; n++) {
        const int64_t b = n / j->at->groups, group = n % j->at->groups;
        const unit u = unit_at(j, b, group);
        *u.finite = 0;
        write_means(j, b, group, &u);
        write_keys(j, b, group, &u);
        write_values(j, b, group, &u);
    }
}

/* A query, and the visible keys. */
typedef struct query {
    int64_t b, h, i;
    int64_t first, end;
    double scale;
    const int8_t *numbers;
    unit unit;
} query;

static query query_at(const job *j, int64_t n)
{
    const tn_attention_op *at = j->at;
    query q = {.b = n / at->queries / at->heads,
               .h = n / at->queries % at->heads,
               .i = n % at->queries,
               .scale = j->scales[n],
               .numbers = j->q + n * at->size};
    const int64_t seen = tn_attention_seen(at, q.i, at->queries, at->keys, &q.first);
    q.end = q.first + seen;
    q.unit = unit_at(j, q.b, q.h / (at->heads / at->groups));
    return q;
}

/* Returns the scale of the queries that share one with query i. */
static double query_scale(const job *j, int64_t b, int64_t h, int64_t i)
{
    const int64_t block = i / TN_QUANTIZED_Q_ROWS * TN_QUANTIZED_Q_ROWS;
    double greatest = 0, finite = 0;
    for (int64_t n = block; n < block + TN_QUANTIZED_Q_ROWS && n < j->at->queries; n++) {
        if (tn_quantized_q_group(j->op->scales, n) != tn_quantized_q_group(j->op->scales, i))
            continue;
        for (int64_t d = 0; d < j->at->size; d++) {
            const double x = number_at(j, TN_ATTENTION_QUANTIZED_Q, b, h, n, d);
            greatest = fmax(greatest, fabs(x));
            finite += x * 0;
        }
    }
    return scale_of(greatest, 127) + finite;
}

static void prepare_queries(void *user, int64_t first, int64_t end)
{
    const job *j = user;
    const int64_t size = j->at->size;
    for (int64_t n = first; n < end; n++) {
        const query q = query_at(j, n);
        j->scales[n] = query_scale(j, q.b, q.h, q.i);
        for (int64_t d = 0; d < size; d++)
            j->q[n * size + d] = (int8_t)nearest_integer(
                number_at(j, TN_ATTENTION_QUANTIZED_Q, q.b, q.h, q.i, d) / j->scales[n]);
    }
}

static long double score_of(const job *j, const query *q, int64_t key)
{
    const int8_t *k = q->unit.numbers + key * j->at->size;
    int64_t sum = 0;
    for (int64_t d = 0; d < j->at->size; d++)
        sum += k[d] * q->numbers[d];
    return (long double)j->at->scale * sum * q->scale * q->unit.scales[key];
}

/* What a query has seen so far. */
typedef struct state {
    long double greatest; /* of all scores */
    long double exact;    /* sum of exp(score - greatest) */
    long double weights;  /* the same with rounded weights */
} state;

/* Returns the greatest of the scores with the keys from `first` to `end`. */
static long double greatest_of(const long double *scores, int64_t first, int64_t end)
{
    long double greatest = -(long double)INFINITY;
    for (int64_t key = first; key < end; key++)
        greatest = scores[key] > greatest ? scores[key] : greatest;
    return greatest;
}

/* Replaces the scores by weights relative to the greatest score of all, rounded relative to that of
 * their step. Scores of a step begin at a multiple of its keys. */
static state weigh(const job *j, const query *q, long double *scores)
{
    const int limit = tn_quantized_weight_limit(j->op->weights);
    state s = {greatest_of(scores, q->first, q->end), 0, 0};
    for (int64_t step = q->first / TN_QUANTIZED_STEP * TN_QUANTIZED_STEP; step < q->end;
         step += TN_QUANTIZED_STEP) {
        const int64_t from = step > q->first ? step : q->first;
        const int64_t to = step + TN_QUANTIZED_STEP < q->end ? step + TN_QUANTIZED_STEP : q->end;
        const long double most = greatest_of(scores, from, to), by = expl(most - s.greatest);
        for (int64_t key = from; key < to; key++) {
            const double weight = (double)(limit * expl(scores[key] - most));
            s.exact += expl(scores[key] - s.greatest);
            scores[key] = by * rounded(j, weight) / limit;
            s.weights += scores[key];
        }
    }
    return s;
}

static double offset_of(const job *j, const query *q)
{
    long double sum = 0;
    for (int64_t d = 0; d < j->at->size; d++)
        sum += (long double)number_at(j, TN_ATTENTION_QUANTIZED_Q, q->b, q->h, q->i, d) *
               q->unit.mean[d];
    return (double)(j->at->scale * sum);
}

/* Writes the row of a query; `scores` has room for all keys. */
static void write_row(const job *j, const query *q, long double *scores)
{
    const bool none = q->first >= q->end;
    const double finite = none ? 0 : *q->unit.finite + q->scale * 0;
    for (int64_t key = q->first; key < q->end; key++)
        scores[key] = finite == 0 ? score_of(j, q, key) : 0;
    const state s = weigh(j, q, scores);
    for (int64_t c = 0; c < j->at->value_size; c++) {
        long double sum = 0;
        for (int64_t key = q->first; key < q->end && finite == 0; key++)
            sum += scores[key] * q->unit.values[key * j->at->value_size + c];
        put_number(j, TN_ATTENTION_QUANTIZED_OUT, q->b, q->h, q->i, c,
                   none ? 0 : (double)(sum / s.weights) + finite);
    }
    put_number(j, TN_ATTENTION_QUANTIZED_LSE, q->b, q->h, q->i, 0,
               none ? -(double)INFINITY
                    : (double)(s.greatest + logl(s.exact)) + offset_of(j, q) + finite);
}

/* Computes the queries of a slot: every `slots`-th. */
static void compute_queries(void *user, int64_t slot)
{
    const job *j = user;
    const int64_t rows = j->at->batch * j->at->heads * j->at->queries;
    for (int64_t n = slot; n < rows; n += j->slots) {
        const query q = query_at(j, n);
        write_row(j, &q, j->scores + slot * j->at->keys);
    }
}

static job job_of(const tn_op *op, const tn_run *run, int32_t threads)
{
    const tn_attention_quantized_op *params = TN_PARAMS(op, attention_quantized);
    return (job){.run = run,
                 .op = params,
                 .at = &params->at,
                 .format = tni_ref_element_of(params->weights),
                 .slots = threads > 1 ? threads : 1};
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *asked)
{
    job j = job_of(asked->op, NULL, asked->threads);
    (void)row;
    return lay_out(&j, NULL);
}

static tn_status run_quantized(const tn_run *run, tn_error *err)
{
    job j = job_of(run->op, run, run->threads);
    const tn_attention_op *at = j.at;
    (void)err;
    while (j.slots > 1 && lay_out(&j, NULL) > run->workspace_bytes)
        j.slots--;
    (void)lay_out(&j, run->workspace);
    for (int32_t o = 0; o < TN_ATTENTION_QUANTIZED_OPERANDS; o++)
        j.element[o] = tni_ref_operand_element(run->op, o);
    tni_ref_share(run, at->batch * at->groups, 3 * at->keys * (at->size + at->value_size),
                  prepare_units, &j);
    tni_ref_share(run, at->batch * at->heads * at->queries, 64 * at->size, prepare_queries, &j);
    if (j.slots > 1)
        run->host->parallel_for(run->host->self, j.slots, compute_queries, &j);
    else
        compute_queries(&j, 0);
    return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_BF16, TN_F16, 0};

const tn_kernel_row tni_ref_attention_quantized = {
    .struct_size = sizeof tni_ref_attention_quantized,
    .name = "cpu.attention-quantized.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_ATTENTION_QUANTIZED,
    .version = 1,
    .dtypes = dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TN_ATTENTION_QUANTIZED_USES_WINDOW | TN_ATTENTION_QUANTIZED_USES_GROUPS |
               TN_ATTENTION_QUANTIZED_USES_LSE | TN_ATTENTION_QUANTIZED_USES_VALUE_SIZE |
               TN_ATTENTION_QUANTIZED_USES_STRIDES | TN_ATTENTION_QUANTIZED_USES_OUT_DTYPE |
               TN_ATTENTION_QUANTIZED_USES_RAW | TN_ATTENTION_QUANTIZED_USES_F16 |
               TN_ATTENTION_QUANTIZED_USES_F8 | TN_ATTENTION_QUANTIZED_USES_I8,
    .flops_per_us = 100,
    .bytes_per_us = 500,
    .overhead_us = 1,
    .workspace = size_workspace,
    .run = run_quantized,
};
