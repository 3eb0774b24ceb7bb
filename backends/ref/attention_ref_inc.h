/* attention of one block of queries, in REAL.
 *
 * Included once for each type to compute in. Parameters, which are undefined at the end:
 *     REAL        the type: double or long double
 *     OF(name)    the name of this type's version of a function or struct
 *     MATH(name)  the name of this type's version of a function of <math.h> */
#include "ref_sums_inc.h"

#include "tenon/module/op/attention.h"

#define BLOCK OF(block)

struct BLOCK {
    const tni_ref_attention_job *job;
    tni_ref_head head;
    int64_t first, rows; /* queries */
    int64_t from, to;    /* keys that any of them sees by position */
    double *query;       /* rows of Q */
    double *line;        /* a row of K, V or OUT */
    REAL *score;         /* rows; later the weights */
    bool *sees;          /* rows */
    REAL *sum;           /* rows of weighted values */
};

/* Reads the queries and finds the keys that they see. */
static void OF(read_queries)(struct BLOCK *b)
{
    const tni_ref_attention_job *job = b->job;
    tni_ref_keys_find(job, &b->head, b->first, b->rows, &b->from, &b->to);
    for (int64_t r = 0; r < b->rows; r++) {
        const char *row = tni_ref_query_row(job, &b->head, TN_ATTENTION_Q, b->first + r);
        tni_ref_row_read(job, TN_ATTENTION_Q, row, b->query + r * job->at->size);
        for (int64_t j = b->from; j < b->to; j += TNI_REF_VIEW_KEYS) {
            int64_t count = b->to - j < TNI_REF_VIEW_KEYS ? b->to - j : TNI_REF_VIEW_KEYS;
            int64_t at = r * job->at->keys + j;
            tni_ref_view view;
            (void)tni_ref_view_read(job, &b->head, b->first + r, j, count, &view);
            for (int64_t n = 0; n < count; n++) {
                b->sees[at + n] = view.sees[n];
                b->score[at + n] = view.added[n];
            }
        }
    }
}

/* Reads a row of K or V; returns false, without reading, if no query of the block sees that key. */
static bool OF(read_key)(const struct BLOCK *b, int32_t operand, int64_t j)
{
    bool seen = false;
    for (int64_t r = 0; r < b->rows; r++)
        seen = seen || b->sees[r * b->job->at->keys + j];
    if (seen)
        tni_ref_row_read(b->job, operand, tni_ref_key_row(b->job, &b->head, operand, j), b->line);
    return seen;
}

static void OF(score_keys)(struct BLOCK *b)
{
    const tn_attention_op *at = b->job->at;
    for (int64_t j = b->from; j < b->to; j++) {
        if (!OF(read_key)(b, TN_ATTENTION_K, j))
            continue;
        for (int64_t r = 0; r < b->rows; r++) {
            if (!b->sees[r * at->keys + j])
                continue;
            REAL score = at->scale * OF(dot)(b->query + r * at->size, b->line, at->size);
            if (at->softcap != 0)
                score = at->softcap * MATH(tanh)(score / at->softcap);
            b->score[r * at->keys + j] += score;
        }
    }
}

/* The head's sink; -infinity if none exists. */
static double OF(sink)(const struct BLOCK *b)
{
    const tni_ref_element *element = b->job->element[TN_ATTENTION_SINKS];
    const char *first = tn_operand(b->job->run, TN_ATTENTION_SINKS);
    int64_t step = b->job->op->operand[TN_ATTENTION_SINKS].stride[0] * element->bytes;
    double value = -(double)INFINITY;
    if (element->dtype)
        element->read(first + b->head.h * step, 0, 1, &value);
    return value;
}

/* Turns a row's scores into weights. Returns the divisor of the weighted sums; 0 if the row sees no
 * key, or all its scores are -infinity. */
static REAL OF(weigh)(struct BLOCK *b, int64_t r, REAL *out_lse)
{
    const tn_attention_op *at = b->job->at;
    REAL *score = b->score + r * at->keys, sink = OF(sink)(b), greatest = sink, sum = 0;
    bool *sees = b->sees + r * at->keys, any = false;
    for (int64_t j = b->from; j < b->to; j++) {
        any = any || (sees[j] && score[j] != -(REAL)INFINITY);
        greatest = sees[j] && score[j] > greatest ? score[j] : greatest;
    }
    *out_lse = sink;
    if (!any)
        return 0;
    if (greatest == -(REAL)INFINITY) /* all others are NaN */
        greatest = 0;
    for (int64_t j = b->from; j < b->to; j++) {
        score[j] = sees[j] ? MATH(exp)(score[j] - greatest) : 0;
        sum += score[j];
        if (sees[j] && at->dropout != 0)
            sees[j] = tn_attention_keeps(at, b->head.b, b->head.h, b->first + r, j);
    }
    sum += MATH(exp)(sink - greatest);
    *out_lse = greatest + MATH(log)(sum);
    return sum * (1 - (REAL)at->dropout);
}

static void OF(add_values)(struct BLOCK *b)
{
    const tn_attention_op *at = b->job->at;
    for (int64_t j = b->from; j < b->to; j++) {
        if (!OF(read_key)(b, TN_ATTENTION_V, j))
            continue;
        for (int64_t r = 0; r < b->rows; r++) {
            REAL weight = b->score[r * at->keys + j], *sum = b->sum + r * at->value_size;
            if (b->sees[r * at->keys + j])
                OF(add)(weight, b->line, at->value_size, sum);
        }
    }
}

static void OF(write_row)(const struct BLOCK *b, int64_t r, REAL divisor, REAL lse)
{
    const int64_t size = b->job->at->value_size, i = b->first + r;
    const double rounded = (double)lse;
    for (int64_t d = 0; d < size; d++)
        b->line[d] = divisor == 0 ? 0 : (double)(b->sum[r * size + d] / divisor);
    tni_ref_row_write(b->job, TN_ATTENTION_OUT, b->line,
                      tni_ref_query_row(b->job, &b->head, TN_ATTENTION_OUT, i));
    if (b->job->element[TN_ATTENTION_LSE]->dtype)
        tni_ref_row_write(b->job, TN_ATTENTION_LSE, &rounded,
                          tni_ref_query_row(b->job, &b->head, TN_ATTENTION_LSE, i));
}

/* Bytes of the arrays of `init_arrays`. */
static size_t OF(count_bytes)(const tn_attention_op *at)
{
    const int64_t rows = tni_ref_block_rows(at->queries);
    size_t bytes = tni_ref_room_add(0, rows, at->size, sizeof(double));
    bytes = tni_ref_room_add(bytes, 1, longer_row(at), sizeof(double));
    bytes = tni_ref_room_add(bytes, rows, at->keys, sizeof(REAL));
    bytes = tni_ref_room_add(bytes, rows, at->keys, sizeof(bool));
    return tni_ref_room_add(bytes, rows, at->value_size, sizeof(REAL));
}

static void OF(init_arrays)(struct BLOCK *b, char *room)
{
    const tn_attention_op *at = b->job->at;
    const int64_t rows = tni_ref_block_rows(at->queries);
    b->query = tni_ref_room_next(&room, rows, at->size, sizeof(double));
    b->line = tni_ref_room_next(&room, 1, longer_row(at), sizeof(double));
    b->score = tni_ref_room_next(&room, rows, at->keys, sizeof(REAL));
    b->sees = tni_ref_room_next(&room, rows, at->keys, sizeof(bool));
    b->sum = tni_ref_room_next(&room, rows, at->value_size, sizeof(REAL));
    for (int64_t n = 0; n < rows * at->value_size; n++)
        b->sum[n] = 0;
}

static void OF(compute)(const tni_ref_attention_job *job, int64_t block, char *room)
{
    const int64_t heads = job->at->heads, head = block / job->query_blocks;
    struct BLOCK b = {.job = job, .head = tni_ref_head_of(job, head / heads, head % heads)};
    REAL divisor[TNI_REF_BLOCK_ROWS], lse[TNI_REF_BLOCK_ROWS];
    b.first = block % job->query_blocks * TNI_REF_BLOCK_ROWS;
    b.rows = tni_ref_block_rows(b.head.in.queries - b.first);
    if (b.rows <= 0) /* a sequence shorter than others */
        return;
    OF(init_arrays)(&b, room);
    OF(read_queries)(&b);
    OF(score_keys)(&b);
    for (int64_t r = 0; r < b.rows; r++)
        divisor[r] = OF(weigh)(&b, r, &lse[r]);
    OF(add_values)(&b);
    for (int64_t r = 0; r < b.rows; r++)
        OF(write_row)(&b, r, divisor[r], lse[r]);
}

#undef BLOCK
#undef REAL
#undef OF
#undef MATH
