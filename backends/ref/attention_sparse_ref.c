/* attention-sparse: for each query, the scores with the valid keys of its listed blocks, the
 * exponentials relative to the greatest score, and the sums of the values weighted by these. Each
 * query is computed separately, in long double, one key after the other. */
#include "ref_elementwise.h"

#include "tenon/module/attention_sparse.h"

#include <math.h>
#include <stdbool.h>

typedef struct job {
    const tn_run *run;
    const tn_attention_sparse_op *sparse;
    const tni_ref_element *element[TN_ATTENTION_SPARSE_OPERANDS];
} job;

/* A query, by its slot and its token, and the visible keys by position. */
typedef struct query {
    int64_t b, h, group, slot, i;
    int64_t first, end;
} query;

/* Reads `count` elements of a row, from element d on. */
static void read_part(const job *j, int32_t operand, int64_t b, int64_t h, int64_t i, int64_t d,
                      int64_t count, double *out)
{
    const int64_t *stride = j->run->op->operand[operand].stride;
    const int64_t bytes = j->element[operand]->bytes;
    const char *first = tn_operand(j->run, operand);
    first += (b * stride[0] + h * stride[1] + i * stride[2] + d * stride[3]) * bytes;
    j->element[operand]->read(first, stride[3] * bytes, count, out);
}

static long double score_of(const job *j, const query *q, int64_t key)
{
    const int64_t size = j->sparse->at.size;
    double a[TNI_REF_PIECE], b[TNI_REF_PIECE];
    long double sum = 0;
    for (int64_t d = 0; d < size; d += TNI_REF_PIECE) {
        const int64_t count = size - d < TNI_REF_PIECE ? size - d : TNI_REF_PIECE;
        read_part(j, TN_ATTENTION_SPARSE_Q, q->b, q->h, q->i, d, count, a);
        read_part(j, TN_ATTENTION_SPARSE_K, q->b, q->group, key, d, count, b);
        for (int64_t n = 0; n < count; n++)
            sum += (long double)a[n] * b[n];
    }
    return j->sparse->at.scale * sum;
}

/* The visible keys of a query, one after the other. */
typedef struct keys {
    tn_sparse_row row;
    int64_t at, end; /* slots of the current block */
} keys;

static keys keys_of(const job *j, const query *q)
{
    keys k = {.at = 0, .end = 0};
    tn_attention_sparse_row(j->run, q->b, q->h, q->slot / j->sparse->block_queries, &k.row);
    return k;
}

/* Returns the next key, or -1 after the last one. */
static int64_t next_key(const job *j, const query *q, keys *k)
{
    for (;;) {
        while (k->at < k->end) {
            const int64_t key = tn_attention_sparse_token(j->run, q->b, k->at++);
            if (key >= q->first && key < q->end)
                return key;
        }
        const int64_t block = tn_attention_sparse_next(&k->row);
        if (block < 0)
            return -1;
        k->at = block * j->sparse->block_keys;
        k->end = k->at + tn_attention_sparse_size(j->run, q->b, block);
    }
}

/* The greatest score of a query, and the sum of the exponentials relative to it. */
typedef struct total {
    long double greatest, sum;
    bool any; /* whether some score is not -infinity */
} total;

static total total_of(const job *j, const query *q)
{
    total t = {.greatest = -(long double)INFINITY};
    keys k = keys_of(j, q);
    for (int64_t key; (key = next_key(j, q, &k)) >= 0;) {
        const long double score = score_of(j, q, key);
        t.any = t.any || score != -(long double)INFINITY;
        t.greatest = score > t.greatest ? score : t.greatest;
    }
    if (t.greatest == -(long double)INFINITY) /* all others are NaN */
        t.greatest = 0;
    k = keys_of(j, q);
    for (int64_t key; t.any && (key = next_key(j, q, &k)) >= 0;)
        t.sum += expl(score_of(j, q, key) - t.greatest);
    return t;
}

/* Writes `count` elements of a query's row of OUT, from element d on. */
static void write_part(const job *j, const query *q, const total *t, int64_t d, int64_t count)
{
    const int64_t *stride = j->run->op->operand[TN_ATTENTION_SPARSE_OUT].stride;
    const int64_t bytes = j->element[TN_ATTENTION_SPARSE_OUT]->bytes;
    char *to = tn_operand(j->run, TN_ATTENTION_SPARSE_OUT);
    long double sum[TNI_REF_PIECE] = {0};
    double values[TNI_REF_PIECE];
    keys k = keys_of(j, q);
    for (int64_t key; t->any && (key = next_key(j, q, &k)) >= 0;) {
        const long double weight = expl(score_of(j, q, key) - t->greatest);
        read_part(j, TN_ATTENTION_SPARSE_V, q->b, q->group, key, d, count, values);
        for (int64_t n = 0; n < count; n++)
            sum[n] += weight * values[n];
    }
    for (int64_t n = 0; n < count; n++)
        values[n] = t->any ? (double)(sum[n] / t->sum) : 0;
    to += (q->b * stride[0] + q->h * stride[1] + q->i * stride[2] + d * stride[3]) * bytes;
    j->element[TN_ATTENTION_SPARSE_OUT]->write(values, count, to, stride[3] * bytes);
}

static void write_lse(const job *j, const query *q, const total *t)
{
    const tni_ref_element *element = j->element[TN_ATTENTION_SPARSE_LSE];
    const int64_t *stride = j->run->op->operand[TN_ATTENTION_SPARSE_LSE].stride;
    const double lse = t->any ? (double)(t->greatest + logl(t->sum)) : -(double)INFINITY;
    char *to = tn_operand(j->run, TN_ATTENTION_SPARSE_LSE);
    if (element->dtype)
        element->write(
            &lse, 1, to + (q->b * stride[0] + q->h * stride[1] + q->i * stride[2]) * element->bytes,
            0);
}

static int64_t slots_of_queries(const tn_op *op)
{
    return op->operand[TN_ATTENTION_SPARSE_ORDER].dtype == TN_DTYPE_NONE
               ? TN_PARAMS(op, attention_sparse)->at.queries
               : tn_attention_sparse_slots(op);
}

static void compute_queries(void *user, int64_t first, int64_t end)
{
    const job *j = user;
    const tn_attention_op *at = &j->sparse->at;
    const bool ordered = j->run->op->operand[TN_ATTENTION_SPARSE_ORDER].dtype != TN_DTYPE_NONE;
    const int64_t slots = slots_of_queries(j->run->op);
    for (int64_t n = first; n < end; n++) {
        query q = {.b = n / slots / at->heads, .h = n / slots % at->heads, .slot = n % slots};
        const int64_t block = q.slot / j->sparse->block_queries;
        if (ordered && q.slot - block * j->sparse->block_queries >=
                           tn_attention_sparse_size(j->run, q.b, block))
            continue;
        q.i = tn_attention_sparse_token(j->run, q.b, q.slot);
        q.group = q.h / (at->heads / at->groups);
        const int64_t seen = tn_attention_seen(at, q.i, at->queries, at->keys, &q.first);
        q.end = q.first + seen;
        const total t = total_of(j, &q);
        for (int64_t d = 0; d < at->value_size; d += TNI_REF_PIECE)
            write_part(j, &q, &t, d,
                       at->value_size - d < TNI_REF_PIECE ? at->value_size - d : TNI_REF_PIECE);
        write_lse(j, &q, &t);
    }
}

static tn_status run_sparse(const tn_run *run, tn_error *err)
{
    job j = {.run = run, .sparse = TN_PARAMS(run->op, attention_sparse)};
    const tn_attention_op *at = &j.sparse->at;
    tn_status status = tn_attention_sparse_check(run, err);
    if (!status)
        status = tn_attention_sparse_check_order(run, run->workspace, err);
    if (status)
        return status;
    for (int32_t o = 0; o < TN_ATTENTION_SPARSE_OPERANDS; o++)
        j.element[o] = tni_ref_operand_element(run->op, o);
    tni_ref_share(run, at->batch * at->heads * slots_of_queries(run->op),
                  3 * at->size * (at->keys + 1), compute_queries, &j);
    return TN_OK;
}

static uint64_t size_workspace(const tn_kernel_row *row, const tn_query *of)
{
    (void)row;
    return of->op->operand[TN_ATTENTION_SPARSE_ORDER].dtype ? tn_attention_sparse_marks(of->op) : 0;
}

const tn_kernel_row tni_ref_attention_sparse = {
    .struct_size = sizeof tni_ref_attention_sparse,
    .name = "cpu.attention-sparse.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_ATTENTION_SPARSE,
    .version = 1,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TN_ATTENTION_SPARSE_USES_WINDOW | TN_ATTENTION_SPARSE_USES_MASK |
               TN_ATTENTION_SPARSE_USES_LISTS | TN_ATTENTION_SPARSE_USES_SIZES |
               TN_ATTENTION_SPARSE_USES_GROUPS | TN_ATTENTION_SPARSE_USES_LSE |
               TN_ATTENTION_SPARSE_USES_VALUE_SIZE | TN_ATTENTION_SPARSE_USES_STRIDES |
               TN_ATTENTION_SPARSE_USES_OUT_DTYPE | TN_ATTENTION_SPARSE_USES_ORDER,
    .flops_per_us = 100,
    .bytes_per_us = 500,
    .overhead_us = 1,
    .workspace = size_workspace,
    .run = run_sparse,
};
