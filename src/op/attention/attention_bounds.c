#include "attention_bounds.h"

#include "base/alloc.h"
#include "tenon/module/attention.h"
#include "tenon/module/op/attention_backward.h"

#include <float.h>

/* A query and a key that it sees. */
typedef struct pair {
    double score, error;
    double slope; /* derivative of the softcap at the score */
    double keep;  /* factor of dropout: 0 if it drops the weight */
    double mask;  /* value that is added to the score */
} pair;

/* Sums for one column of an output row: of the errors, absolute values and squares of its terms. */
typedef struct column {
    double errors, sizes, squares;
} column;

/* The position of a row of an operand. */
typedef struct row_at {
    int32_t operand;
    int64_t b, h, i;
} row_at;

/* A cached row of an operand. */
typedef struct line {
    row_at at;
    bool read;
    double square; /* sum of squares */
    double *numbers;
} line;

typedef struct rows {
    const tni_bounds *bounds;  /* the owner */
    tn_run run;                /* the op and its data, as a kernel has them */
    const tn_attention_op *at; /* `params` */
    tn_attention_op params;    /* with the seed and offset of the run */
    double read;               /* roundoff of f32 operands when read as tf32 or bf16; else 0 */
    double narrow;             /* roundoff of 16-bit weights; else 0 */
    double sums;               /* roundoff of scores that are kept in 16 bits; else 0 */
    double log_sum;            /* the error of the row's lse */
    double products;           /* g(size) + 8 */
    double values;             /* g(value size) + 8 */
    pair *pairs;               /* of a row, by key; score -infinity: not seen */
    column *columns;
    line *lines; /* `slots` for each operand; each has the row read last */
    int64_t slots;
    int64_t length;  /* of a head: the larger number of queries and keys */
    double *numbers; /* of all lines */
} rows;

/* Maximum doubles in all lines. Rows are cached because every pair of a query and a key reads some. */
static const int64_t numbers_most = 1 << 23;

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

static double number_at(const rows *r, int32_t operand, int64_t b, int64_t h, int64_t i, int64_t c)
{
    const tni_place place = {{b, h, i, c}};
    return tni_bounds_input(r->bounds, operand, &place).re;
}

/* Returns a row, which is read unless it is cached. It is valid until another row of the same operand
 * that has the same slot is read. */
static const line *read_row(const rows *r, row_at at, int64_t count)
{
    int64_t slot = (at.b * r->at->page + at.h * r->length + at.i) % r->slots;
    line *l = &r->lines[at.operand * r->slots + slot];
    if (l->read && l->at.b == at.b && l->at.h == at.h && l->at.i == at.i)
        return l;
    l->at = at;
    l->read = true;
    l->square = 0;
    for (int64_t c = 0; c < count; c++) {
        l->numbers[c] = number_at(r, at.operand, at.b, at.h, at.i, c);
        l->square += l->numbers[c] * l->numbers[c];
    }
    return l;
}

/* Returns the dot product of two rows, and the product of their norms. */
static double product(const rows *r, row_at x, row_at y, int64_t count, double *out_norms)
{
    const line *p = read_row(r, x, count), *q = read_row(r, y, count);
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += p->numbers[c] * q->numbers[c];
    *out_norms = sqrt(p->square) * sqrt(q->square);
    return sum;
}

/* One head's sequence. */
typedef struct scene {
    tn_sequence s;
    int64_t b, h, group;
} scene;

static row_at query_of(const scene *in, int32_t operand, int64_t i)
{
    return (row_at){operand, in->s.batch, in->h, in->s.first_query + i};
}

static row_at key_of(const rows *r, const scene *in, int32_t operand, int64_t j)
{
    int64_t page = 0;
    if (!r->at->page)
        return (row_at){operand, in->s.batch, in->group, in->s.first_key + j};
    (void)tn_attention_page(&r->run, in->b, j / r->at->page, &page, NULL);
    return (row_at){operand, page, in->group, j % r->at->page};
}

static bool add_mask(const rows *r, const scene *in, int64_t i, int64_t j, pair *io)
{
    tn_dtype dtype = r->run.op->operand[TN_ATTENTION_MASK].dtype;
    if (!dtype)
        return true;
    double mask = number_at(r, TN_ATTENTION_MASK, in->b, in->h, i, j);
    if (dtype == TN_BOOL)
        return mask != 0;
    io->mask = mask;
    io->score += mask;
    return mask > -(double)INFINITY;
}

static void judge_pair(const rows *r, const scene *in, int64_t i, int64_t j, double u, pair *out)
{
    const tn_attention_op *at = r->at;
    double norms, dot = product(r, query_of(in, TN_ATTENTION_Q, i),
                                key_of(r, in, TN_ATTENTION_K, j), at->size, &norms);
    double read = 4 * r->read * least_of(1, 8 / sqrt((double)at->size + 1));
    *out = (pair){.score = at->scale * dot, .slope = 1, .keep = 1};
    out->error = (r->products * u + read + 4 * r->sums) * fabs(at->scale) * norms;
    if (at->softcap != 0) {
        double turned = tanh(out->score / at->softcap);
        out->score = at->softcap * turned;
        out->slope = 1 - turned * turned;
        out->error += 8 * u * at->softcap;
    }
    if (!add_mask(r, in, i, j, out)) {
        *out = (pair){.score = -(double)INFINITY};
        return;
    }
    out->error += 4 * u * (fabs(out->score) + fabs(out->mask));
    if (at->dropout != 0)
        out->keep = tn_attention_keeps(at, in->b, in->h, i, j) ? 1 / (1 - at->dropout) : 0;
}

/* Computes the pairs of query i with all keys; those it does not see by position get -infinity. */
static void judge_query(const rows *r, const scene *in, int64_t i, double u)
{
    int64_t first, count = tn_attention_seen(r->at, i, in->s.queries, in->s.keys, &first);
    for (int64_t j = 0; j < in->s.keys; j++) {
        if (j >= first && j < first + count)
            judge_pair(r, in, i, j, u, &r->pairs[j]);
        else
            r->pairs[j] = (pair){.score = -(double)INFINITY};
    }
}

static void add(column *to, double value, double error)
{
    to->errors += error;
    to->sizes += fabs(value);
    to->squares += value * value;
}

static double bound_of(const rows *r, const column *of, double count, double u)
{
    double narrow = r->narrow > r->read ? r->narrow : r->read;
    return of->errors + tni_bounds_gathered(count) * u * of->sizes +
           least_of(4 * narrow * of->sizes, 16 * narrow * sqrt(of->squares));
}

static double sink_of(const rows *r, const scene *in)
{
    const tn_layout *layout = &r->run.op->operand[TN_ATTENTION_SINKS];
    if (!layout->dtype)
        return -(double)INFINITY;
    return number_at(r, TN_ATTENTION_SINKS, in->h, 0, 0, 0);
}

/* Relative error of exponentials for 16-bit operands: less accurate, as the weights are rounded anyway. */
static double power_of(const rows *r)
{
    return r->narrow > 0 ? 0x1p-18 : 0;
}

/* Computes the errors of out and lse of one query. */
static void take_forward(rows *r, const scene *in, int64_t i, double u)
{
    double greatest = sink_of(r, in), sum, log_sum = 0, n = (double)in->s.keys;
    judge_query(r, in, i, u);
    for (int64_t j = 0; j < in->s.keys; j++)
        greatest = r->pairs[j].score > greatest ? r->pairs[j].score : greatest;
    sum = sink_of(r, in) > -(double)INFINITY ? exp(sink_of(r, in) - greatest) : 0;
    for (int64_t j = 0; j < in->s.keys; j++)
        sum += r->pairs[j].score > -(double)INFINITY ? exp(r->pairs[j].score - greatest) : 0;
    for (int64_t j = 0; j < in->s.keys && sum > 0; j++) {
        if (r->pairs[j].score > -(double)INFINITY)
            log_sum += exp(r->pairs[j].score - greatest) / sum * r->pairs[j].error;
    }
    r->log_sum = sum > 0 ? log_sum + power_of(r) + (16 + tni_bounds_gathered(n)) * u : 0;
    for (int64_t j = 0; j < in->s.keys && sum > 0; j++) {
        const pair *p = &r->pairs[j];
        if (p->score == -(double)INFINITY)
            continue;
        double weight = exp(p->score - greatest) / sum * p->keep;
        double error = p->error + r->log_sum + (16 + 2 * fabs(p->score - greatest)) * u;
        const line *v = read_row(r, key_of(r, in, TN_ATTENTION_V, j), r->at->value_size);
        for (int64_t c = 0; c < r->at->value_size; c++) {
            double value = weight * v->numbers[c];
            add(&r->columns[c], value, fabs(value) * error);
        }
    }
}

/* A weight and the gradient of its score, with their errors. */
typedef struct gradient {
    double weight, weight_error;
    double score, score_error;
} gradient;

static gradient gradient_of(const rows *r, const scene *in, int64_t i, int64_t j, double u)
{
    pair p;
    double lse = number_at(r, TN_ATTENTION_LSE, in->b, in->h, i, 0), value_norms, out_norms;
    row_at given = query_of(in, TN_ATTENTION_BACKWARD_DOUT, i);
    judge_pair(r, in, i, j, u, &p);
    if (p.score == -(double)INFINITY)
        return (gradient){0};
    double dp = p.keep * product(r, given, key_of(r, in, TN_ATTENTION_V, j), r->at->value_size,
                                 &value_norms);
    double delta =
        product(r, given, query_of(in, TN_ATTENTION_OUT, i), r->at->value_size, &out_norms);
    double weight = exp(p.score - lse), both = fabs(dp) + fabs(delta);
    double error = p.error + 2 * u * fabs(lse) + (16 + 2 * fabs(p.score - lse)) * u;
    double read = r->values * u + 4 * r->read;
    double least = u > DBL_EPSILON ? FLT_MIN : DBL_MIN; /* smaller weights may underflow to 0 */
    gradient g = {.weight = p.keep * weight, .weight_error = p.keep * (weight * error + least)};
    g.score = weight * (dp - delta) * p.slope * r->at->scale;
    g.score_error =
        fabs(r->at->scale) *
        (weight * (both * (error + 16 * u) + read * (p.keep * value_norms + out_norms)) +
         least * both);
    return g;
}

static bool sees(const rows *r, const scene *in, int64_t i, int64_t j)
{
    int64_t first, count = tn_attention_seen(r->at, i, in->s.queries, in->s.keys, &first);
    return j >= first && j < first + count;
}

/* Adds the contribution of one pair to a gradient's row: dq sums over keys, dk and dv over queries. */
static void add_gradient(rows *r, const scene *in, int32_t output, int64_t i, int64_t j, double u)
{
    bool of_values = output == TN_ATTENTION_BACKWARD_DV;
    if (!sees(r, in, i, j))
        return;
    gradient g = gradient_of(r, in, i, j, u);
    row_at from = output == TN_ATTENTION_BACKWARD_DQ
                      ? key_of(r, in, TN_ATTENTION_K, j)
                      : query_of(in, of_values ? TN_ATTENTION_BACKWARD_DOUT : TN_ATTENTION_Q, i);
    int64_t count = of_values ? r->at->value_size : r->at->size;
    double factor = of_values ? g.weight : g.score;
    double error = of_values ? g.weight_error : g.score_error;
    const line *row = read_row(r, from, count);
    for (int64_t c = 0; c < count; c++)
        add(&r->columns[c], factor * row->numbers[c], error * fabs(row->numbers[c]));
}

static void take_backward(rows *r, int32_t output, const tni_place *place, double u)
{
    const tn_attention_op *at = r->at;
    int64_t share = at->groups > 0 ? at->heads / at->groups : 1, row = place->index[2];
    scene in = {.s = {place->index[0], 0, 0, at->queries, at->keys}, .b = place->index[0]};
    if (output == TN_ATTENTION_BACKWARD_DQ) {
        in.h = place->index[1];
        in.group = in.h / share;
        for (int64_t j = 0; j < at->keys; j++)
            add_gradient(r, &in, output, row, j, u);
        return;
    }
    in.group = place->index[1];
    for (in.h = in.group * share; in.h < (in.group + 1) * share; in.h++) {
        for (int64_t i = 0; i < at->queries; i++)
            add_gradient(r, &in, output, i, row, u);
    }
}

/* Returns the last packed sequence that begins at or before row `i`, by binary search: starts never decrease. -1 if
 * there is none, or if the tables are invalid. */
static int64_t find_sequence(const rows *r, int64_t i)
{
    int64_t low = -1, high = r->at->batch;
    while (high - low > 1) {
        tn_sequence s;
        const int64_t middle = low + (high - low) / 2;
        if (tn_attention_sequence(&r->run, middle, &s, NULL))
            return -1;
        *(s.first_query <= i ? &low : &high) = middle;
    }
    return low;
}

/* Finds the sequence of a row of out; false for a row outside all sequences, which is not written. */
static bool find_scene(const rows *r, const tni_place *place, scene *out, int64_t *out_query)
{
    const tn_attention_op *at = r->at;
    const bool packed = r->run.op->operand[TN_ATTENTION_STARTS_Q].dtype != TN_DTYPE_NONE;
    *out = (scene){.h = place->index[1]};
    out->group = at->groups > 0 ? out->h / (at->heads / at->groups) : 0;
    out->b = packed ? find_sequence(r, place->index[2]) : place->index[0];
    if (out->b < 0 || tn_attention_sequence(&r->run, out->b, &out->s, NULL))
        return false;
    *out_query = place->index[2] - out->s.first_query;
    return *out_query < out->s.queries;
}

double tni_attention_bound(tni_bounds *bounds, const tni_place *place, double size)
{
    rows *r = bounds->own;
    const tn_attention_op *at = r->at;
    int32_t output = bounds->output;
    bool backward = bounds->op->kind == TN_OP_ATTENTION_BACKWARD;
    bool lse = !backward && output == TN_ATTENTION_LSE;
    int64_t widest = at->size > at->value_size ? at->size : at->value_size, query;
    scene in;
    if (lse || place->index[3] == 0) {
        memset(r->columns, 0, (size_t)(widest + 1) * sizeof r->columns[0]);
        r->log_sum = 0;
        if (backward)
            take_backward(r, output, place, bounds->work);
        else if (find_scene(r, place, &in, &query))
            take_forward(r, &in, query, bounds->work);
    }
    if (lse)
        return r->log_sum > 0 ? r->log_sum + 4 * bounds->work * size : 0;
    bool along_keys = !backward || output == TN_ATTENTION_BACKWARD_DQ;
    double count = (double)(along_keys ? at->keys : at->queries * (at->heads / at->groups));
    return bound_of(r, &r->columns[place->index[3]], count, bounds->work);
}

/* Allocates a slot for each row that an operand has in one batch, or as many as numbers_most permits. */
static bool make_lines(rows *r, int64_t width)
{
    const tn_attention_op *at = r->at;
    int64_t most = numbers_most / TN_OP_OPERANDS_MAX / width;
    r->length = at->keys > at->queries ? at->keys : at->queries;
    bool all = r->length <= most && r->length * at->heads <= most;
    r->slots = all ? r->length * at->heads : most;
    r->slots = r->slots < 1 ? 1 : r->slots;
    size_t count = (size_t)r->slots * TN_OP_OPERANDS_MAX;
    r->lines = tni_alloc_zeroed(count, sizeof r->lines[0]);
    r->numbers = tni_alloc_zeroed(count * (size_t)width, sizeof r->numbers[0]);
    for (size_t i = 0; r->lines && r->numbers && i < count; i++)
        r->lines[i].numbers = r->numbers + i * (size_t)width;
    return r->lines && r->numbers;
}

tn_status tni_attention_bounds_init(tni_bounds *bounds, tn_error *err)
{
    const tn_attention_op *at = TN_PARAMS(bounds->op, attention);
    tn_dtype dtype = bounds->op->operand[TN_ATTENTION_Q].dtype;
    int64_t width = (at->size > at->value_size ? at->size : at->value_size) + 1;
    rows *made = tni_alloc_zeroed(1, sizeof *made);
    bool whole = false;
    if (made) {
        made->bounds = bounds;
        made->run =
            (tn_run){.struct_size = sizeof made->run, .op = bounds->op, .data = bounds->data};
        made->params = tn_attention_params(&made->run);
        made->at = &made->params;
        made->pairs = tni_alloc_zeroed((size_t)at->keys + 1, sizeof made->pairs[0]);
        made->columns = tni_alloc_zeroed((size_t)width, sizeof made->columns[0]);
        whole = make_lines(made, width) && made->pairs && made->columns;
    }
    bounds->own = made;
    if (!whole) {
        tni_attention_bounds_release(bounds);
        return tni_no_memory(err, "tn_check", "the bounds of a row");
    }
    made->products = tni_bounds_gathered((double)at->size) + 8;
    made->values = tni_bounds_gathered((double)at->value_size) + 8;
    if (dtype == TN_F32)
        made->read = bounds->numerics & TN_NUM_ROUNDS_F32_BF16   ? 0x1p-8
                     : bounds->numerics & TN_NUM_ROUNDS_F32_TF32 ? 0x1p-11
                                                                 : 0;
    made->narrow = dtype == TN_F16 || dtype == TN_BF16 ? tni_dtype_roundoff(dtype) : 0;
    made->sums = bounds->numerics & TN_NUM_REDUCED_REDUCTION ? made->narrow : 0;
    return TN_OK;
}

void tni_attention_bounds_release(tni_bounds *bounds)
{
    rows *r = bounds->own;
    if (!r)
        return;
    tni_release(r->pairs);
    tni_release(r->columns);
    tni_release(r->lines);
    tni_release(r->numbers);
    tni_release(r);
    bounds->own = NULL;
}
