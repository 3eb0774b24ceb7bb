/* attention-backward of one block, in REAL. `weight` is recomputed from lse, and `kept` is 1 / (1 -
 * dropout), or 0 for dropped weights:
 *
 *     slope = scale weight (kept dout . v - dout . out), times that of the softcap
 *     dq = sum of slope k        dk = sum of slope q        dv = sum of kept weight dout
 *
 * Included once for each type to compute in. Parameters, which are undefined at the end:
 *     REAL        the type: double or long double
 *     OF(name)    the name of this type's version of a function or struct
 *     MATH(name)  the name of this type's version of a function of <math.h> */
#include "ref_sums_inc.h"

#include "tenon/module/op/attention_backward.h"

#define QUERY  OF(query)
#define KEY    OF(key)
#define ARRAYS OF(arrays)

/* A query and a key, with their rows. */
struct QUERY {
    REAL delta; /* dout . out */
    double lse;
    int64_t i;
    double *q, *dout;
};

struct KEY {
    int64_t j;
    double *k, *v;
};

/* Arrays of a task: rows of the block's own side with their gradients, and rows of the other
 * side. */
struct ARRAYS {
    double *q_or_k, *dout_or_v;
    REAL *dq_or_dk, *dv;
    double *line[3];
};

static size_t OF(count_bytes)(const tn_attention_op *at)
{
    const int64_t longest = at->size > at->value_size ? at->size : at->value_size;
    size_t bytes = tni_ref_room_add(0, TNI_REF_BLOCK_ROWS, at->size, sizeof(double));
    bytes = tni_ref_room_add(bytes, TNI_REF_BLOCK_ROWS, at->value_size, sizeof(double));
    bytes = tni_ref_room_add(bytes, TNI_REF_BLOCK_ROWS, at->size, sizeof(REAL));
    bytes = tni_ref_room_add(bytes, TNI_REF_BLOCK_ROWS, at->value_size, sizeof(REAL));
    for (int i = 0; i < 3; i++)
        bytes = tni_ref_room_add(bytes, 1, longest, sizeof(double));
    return bytes;
}

static struct ARRAYS OF(init_arrays)(const tn_attention_op *at, char *room)
{
    const int64_t longest = at->size > at->value_size ? at->size : at->value_size;
    struct ARRAYS a;
    a.q_or_k = tni_ref_room_next(&room, TNI_REF_BLOCK_ROWS, at->size, sizeof(double));
    a.dout_or_v = tni_ref_room_next(&room, TNI_REF_BLOCK_ROWS, at->value_size, sizeof(double));
    a.dq_or_dk = tni_ref_room_next(&room, TNI_REF_BLOCK_ROWS, at->size, sizeof(REAL));
    a.dv = tni_ref_room_next(&room, TNI_REF_BLOCK_ROWS, at->value_size, sizeof(REAL));
    for (int i = 0; i < 3; i++)
        a.line[i] = tni_ref_room_next(&room, 1, longest, sizeof(double));
    for (int64_t n = 0; n < TNI_REF_BLOCK_ROWS * at->size; n++)
        a.dq_or_dk[n] = 0;
    for (int64_t n = 0; n < TNI_REF_BLOCK_ROWS * at->value_size; n++)
        a.dv[n] = 0;
    return a;
}

/* `line` is a buffer for the row of out. */
static void OF(read_query)(const tni_ref_attention_job *job, const tni_ref_head *head,
                           struct QUERY *query, double *line)
{
    struct {
        int32_t operand;
        double *to;
    } reads[] = {{TN_ATTENTION_Q, query->q},
                 {TN_ATTENTION_BACKWARD_DOUT, query->dout},
                 {TN_ATTENTION_OUT, line},
                 {TN_ATTENTION_LSE, &query->lse}};
    for (size_t n = 0; n < sizeof reads / sizeof reads[0]; n++)
        tni_ref_row_read(job, reads[n].operand,
                         tni_ref_query_row(job, head, reads[n].operand, query->i), reads[n].to);
    query->delta = OF(dot)(query->dout, line, job->at->value_size);
}

/* A query that saw no key, or whose scores were all -infinity, contributes to no gradient. */
static bool OF(saw_nothing)(const struct QUERY *query)
{
    return query->lse == -(double)INFINITY;
}

static void OF(read_key)(const tni_ref_attention_job *job, const tni_ref_head *head,
                         struct KEY *key)
{
    tni_ref_row_read(job, TN_ATTENTION_K, tni_ref_key_row(job, head, TN_ATTENTION_K, key->j),
                     key->k);
    tni_ref_row_read(job, TN_ATTENTION_V, tni_ref_key_row(job, head, TN_ATTENTION_V, key->j),
                     key->v);
}

static void OF(write_row)(const tni_ref_attention_job *job, int32_t operand, const REAL *sum,
                          double *line, char *row)
{
    for (int64_t d = 0; d < job->op->operand[operand].shape[3]; d++)
        line[d] = (double)sum[d];
    tni_ref_row_write(job, operand, line, row);
}

/* Returns the slope of a query and a key that it sees. *out_weight is the weight of the value, with
 * dropout; *out_kept is false if dropout dropped it. */
static REAL OF(slope)(const tni_ref_attention_job *job, const tni_ref_head *head,
                      const struct QUERY *query, const struct KEY *key, double added,
                      REAL *out_weight, bool *out_kept)
{
    const tn_attention_op *at = job->at;
    REAL score = at->scale * OF(dot)(query->q, key->k, at->size), bend = 1, along = 0, weight;
    if (at->softcap != 0) {
        REAL part = MATH(tanh)(score / at->softcap);
        score = at->softcap * part;
        bend = 1 - part * part;
    }
    weight = MATH(exp)(score + added - query->lse);
    *out_weight = 0;
    *out_kept = at->dropout == 0 || tn_attention_keeps(at, head->b, head->h, query->i, key->j);
    if (*out_kept) {
        along = OF(dot)(query->dout, key->v, at->value_size) / (1 - (REAL)at->dropout);
        *out_weight = weight / (1 - (REAL)at->dropout);
    }
    return at->scale * bend * weight * (along - query->delta);
}

/* Adds some keys to all queries of a block. */
static void OF(add_keys)(const tni_ref_attention_job *job, const tni_ref_head *head,
                         const struct QUERY *queries, int64_t rows, int64_t first, int64_t count,
                         struct ARRAYS *a)
{
    tni_ref_view view[TNI_REF_BLOCK_ROWS];
    for (int64_t r = 0; r < rows; r++)
        (void)tni_ref_view_read(job, head, queries[r].i, first, count, &view[r]);
    for (int64_t n = 0; n < count; n++) {
        struct KEY key = {-1, a->line[0], a->line[1]};
        for (int64_t r = 0; r < rows; r++) {
            REAL slope, weight, *dq = a->dq_or_dk + r * job->at->size;
            bool kept;
            if (!view[r].sees[n] || OF(saw_nothing)(&queries[r]))
                continue;
            if (key.j < 0) {
                key.j = first + n;
                OF(read_key)(job, head, &key);
            }
            slope = OF(slope)(job, head, &queries[r], &key, view[r].added[n], &weight, &kept);
            OF(add)(slope, key.k, job->at->size, dq);
        }
    }
}

/* Computes dq of a block of queries. */
static void OF(compute_queries)(const tni_ref_attention_job *job, int64_t block, char *room)
{
    const tn_attention_op *at = job->at;
    const int64_t number = block / job->query_blocks;
    const tni_ref_head head = tni_ref_head_of(job, number / at->heads, number % at->heads);
    const int64_t first = block % job->query_blocks * TNI_REF_BLOCK_ROWS;
    const int64_t rows = tni_ref_block_rows(at->queries - first);
    struct ARRAYS a = OF(init_arrays)(at, room);
    struct QUERY queries[TNI_REF_BLOCK_ROWS];
    int64_t from, to;
    for (int64_t r = 0; r < rows; r++) {
        queries[r] = (struct QUERY){
            .i = first + r, .q = a.q_or_k + r * at->size, .dout = a.dout_or_v + r * at->value_size};
        OF(read_query)(job, &head, &queries[r], a.line[2]);
    }
    tni_ref_keys_find(job, &head, first, rows, &from, &to);
    for (int64_t j = from; j < to; j += TNI_REF_VIEW_KEYS) {
        int64_t count = to - j < TNI_REF_VIEW_KEYS ? to - j : TNI_REF_VIEW_KEYS;
        OF(add_keys)(job, &head, queries, rows, j, count, &a);
    }
    for (int64_t r = 0; r < rows; r++) {
        char *dq = tni_ref_query_row(job, &head, TN_ATTENTION_BACKWARD_DQ, first + r);
        OF(write_row)(job, TN_ATTENTION_BACKWARD_DQ, a.dq_or_dk + r * at->size, a.line[0], dq);
    }
}

/* Adds one query to all keys of a block. */
static void OF(add_query)(const tni_ref_attention_job *job, const tni_ref_head *head, int64_t i,
                          const struct KEY *keys, int64_t rows, struct ARRAYS *a)
{
    const tn_attention_op *at = job->at;
    struct QUERY query = {.i = i, .q = a->line[0], .dout = a->line[1]};
    tni_ref_view view;
    if (!tni_ref_view_read(job, head, i, keys[0].j, rows, &view))
        return;
    OF(read_query)(job, head, &query, a->line[2]);
    for (int64_t r = 0; r < rows; r++) {
        REAL weight, slope;
        bool kept;
        if (!view.sees[r] || OF(saw_nothing)(&query))
            continue;
        slope = OF(slope)(job, head, &query, &keys[r], view.added[r], &weight, &kept);
        OF(add)(slope, query.q, at->size, a->dq_or_dk + r * at->size);
        if (kept)
            OF(add)(weight, query.dout, at->value_size, a->dv + r * at->value_size);
    }
}

/* Computes dk and dv of a block of keys, which all heads of their group read. */
static void OF(compute_keys)(const tni_ref_attention_job *job, int64_t block, char *room)
{
    const tn_attention_op *at = job->at;
    const int64_t number = block / job->key_blocks, heads = at->heads / at->groups;
    const int64_t b = number / at->groups, h = number % at->groups * heads;
    const int64_t first = block % job->key_blocks * TNI_REF_BLOCK_ROWS;
    const int64_t rows = tni_ref_block_rows(at->keys - first);
    tni_ref_head head = tni_ref_head_of(job, b, h);
    struct ARRAYS a = OF(init_arrays)(at, room);
    head.group = number % at->groups; /* a group may have no heads */
    struct KEY keys[TNI_REF_BLOCK_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        keys[r] =
            (struct KEY){first + r, a.q_or_k + r * at->size, a.dout_or_v + r * at->value_size};
        OF(read_key)(job, &head, &keys[r]);
    }
    for (head.h = h; head.h < h + heads; head.h++) {
        for (int64_t i = 0; i < at->queries; i++)
            OF(add_query)(job, &head, i, keys, rows, &a);
    }
    for (int64_t r = 0; r < rows; r++) {
        char *dk = tni_ref_key_row(job, &head, TN_ATTENTION_BACKWARD_DK, first + r);
        char *dv = tni_ref_key_row(job, &head, TN_ATTENTION_BACKWARD_DV, first + r);
        OF(write_row)(job, TN_ATTENTION_BACKWARD_DK, a.dq_or_dk + r * at->size, a.line[0], dk);
        OF(write_row)(job, TN_ATTENTION_BACKWARD_DV, a.dv + r * at->value_size, a.line[0], dv);
    }
}

static void OF(compute)(const tni_ref_attention_job *job, int64_t block, char *room)
{
    const int64_t of_queries = job->at->batch * job->at->heads * job->query_blocks;
    if (block < of_queries)
        OF(compute_queries)(job, block, room);
    else
        OF(compute_keys)(job, block - of_queries, room);
}

#undef QUERY
#undef KEY
#undef ARRAYS
#undef REAL
#undef OF
#undef MATH
