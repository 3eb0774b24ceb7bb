/* attention-sparse-backward: each row of DQ separately, from the keys of the query's listed blocks;
 * then each row of DK and DV, from the queries whose lists name the key's block. With the weight
 * exp(score - lse):
 *
 *     slope = scale weight (dout . v - dout . out)
 *     dq = sum of slope k        dk = sum of slope q        dv = sum of weight dout
 *
 * All is computed in long double, one pair after the other; slopes are computed once for DQ and once
 * for DK and DV. */
#include "ref_elementwise.h"

#include "tenon/module/attention_sparse.h"
#include "tenon/module/op/attention_sparse_backward.h"

#include <math.h>
#include <stdbool.h>

enum {
    DOUT = TN_ATTENTION_SPARSE_BACKWARD_DOUT,
    DQ = TN_ATTENTION_SPARSE_BACKWARD_DQ,
    DK = TN_ATTENTION_SPARSE_BACKWARD_DK,
    DV = TN_ATTENTION_SPARSE_BACKWARD_DV
};

typedef struct job {
    const tn_run *run;
    const tn_attention_sparse_op *sparse;
    const tni_ref_element *element[TN_ATTENTION_SPARSE_BACKWARD_OPERANDS];
} job;

/* A query and a key of a head. */
typedef struct pair {
    int64_t b, h, group, i, j;
} pair;

/* A row of an operand. */
typedef struct row {
    int32_t operand;
    int64_t b, h, i;
} row;

static row row_of(int32_t operand, const pair *p)
{
    const bool of_keys = operand == TN_ATTENTION_SPARSE_K || operand == TN_ATTENTION_SPARSE_V ||
                         operand == DK || operand == DV;
    return (row){operand, p->b, of_keys ? p->group : p->h, of_keys ? p->j : p->i};
}

static char *address_of(const job *j, const row *r, int64_t d)
{
    const int64_t *stride = j->run->op->operand[r->operand].stride;
    char *first = tn_operand(j->run, r->operand);
    const int64_t last = r->operand == TN_ATTENTION_SPARSE_LSE ? 0 : d * stride[3];
    return first + (r->b * stride[0] + r->h * stride[1] + r->i * stride[2] + last) *
                       j->element[r->operand]->bytes;
}

/* Reads `count` elements of a row, from element d on. */
static void read_part(const job *j, row r, int64_t d, int64_t count, double *out)
{
    const tni_ref_element *element = j->element[r.operand];
    element->read(address_of(j, &r, d), j->run->op->operand[r.operand].stride[3] * element->bytes,
                  count, out);
}

static long double dot(const job *j, row x, row y, int64_t size)
{
    double a[TNI_REF_PIECE], b[TNI_REF_PIECE];
    long double sum = 0;
    for (int64_t d = 0; d < size; d += TNI_REF_PIECE) {
        const int64_t count = size - d < TNI_REF_PIECE ? size - d : TNI_REF_PIECE;
        read_part(j, x, d, count, a);
        read_part(j, y, d, count, b);
        for (int64_t n = 0; n < count; n++)
            sum += (long double)a[n] * b[n];
    }
    return sum;
}

static double lse_of(const job *j, const pair *p)
{
    const row r = row_of(TN_ATTENTION_SPARSE_LSE, p);
    double lse;
    j->element[r.operand]->read(address_of(j, &r, 0), 0, 1, &lse);
    return lse;
}

/* Returns the weight of a pair. */
static long double weigh(const job *j, const pair *p)
{
    const tn_attention_op *at = &j->sparse->at;
    const long double product =
        dot(j, row_of(TN_ATTENTION_SPARSE_Q, p), row_of(TN_ATTENTION_SPARSE_K, p), at->size);
    return expl(at->scale * product - lse_of(j, p));
}

/* Returns the derivative by the product of query and key. */
static long double slope_of(const job *j, const pair *p, long double weight)
{
    const tn_attention_op *at = &j->sparse->at;
    const row dout = row_of(DOUT, p);
    const long double along = dot(j, dout, row_of(TN_ATTENTION_SPARSE_V, p), at->value_size);
    const long double delta = dot(j, dout, row_of(TN_ATTENTION_SPARSE_OUT, p), at->value_size);
    return at->scale * weight * (along - delta);
}

/* Part of a row of a gradient. */
typedef struct part {
    int64_t d, count;
    long double sum[TNI_REF_PIECE];
} part;

/* Adds `by` times the row's same part. */
static void add_part(const job *j, row r, long double by, part *to)
{
    double values[TNI_REF_PIECE];
    read_part(j, r, to->d, to->count, values);
    for (int64_t n = 0; n < to->count; n++)
        to->sum[n] += by * values[n];
}

static void write_part(const job *j, row r, const part *from)
{
    const tni_ref_element *element = j->element[r.operand];
    double values[TNI_REF_PIECE];
    for (int64_t n = 0; n < from->count; n++)
        values[n] = (double)from->sum[n];
    element->write(values, from->count, address_of(j, &r, from->d),
                   j->run->op->operand[r.operand].stride[3] * element->bytes);
}

/* Whether the query sees the key by position, and has seen any. */
static bool is_visible(const job *j, const pair *p)
{
    const tn_attention_op *at = &j->sparse->at;
    int64_t first;
    const int64_t seen = tn_attention_seen(at, p->i, at->queries, at->keys, &first);
    return p->j >= first && p->j < first + seen && lse_of(j, p) != -(double)INFINITY;
}

/* Computes a part of a row of DQ. */
static void compute_dq(const job *j, pair p, part *to)
{
    tn_sparse_row listed;
    tn_attention_sparse_row(j->run, p.b, p.h, p.i / j->sparse->block_queries, &listed);
    for (int64_t block; (block = tn_attention_sparse_next(&listed)) >= 0;) {
        const int64_t first = block * j->sparse->block_keys;
        const int64_t end = first + tn_attention_sparse_size(j->run, p.b, block);
        for (p.j = first; p.j < end; p.j++) {
            if (is_visible(j, &p))
                add_part(j, row_of(TN_ATTENTION_SPARSE_K, &p), slope_of(j, &p, weigh(j, &p)), to);
        }
    }
    write_part(j, row_of(DQ, &p), to);
}

/* Whether block n of the queries of a head sees a block of keys. */
static bool is_listed(const job *j, const pair *p, int64_t n, int64_t block)
{
    tn_sparse_row listed;
    tn_attention_sparse_row(j->run, p->b, p->h, n, &listed);
    for (int64_t found; (found = tn_attention_sparse_next(&listed)) >= 0;) {
        if (found >= block)
            return found == block;
    }
    return false;
}

/* Adds the queries of block n to a part of the key's row of DK or DV. */
static void add_queries(const job *j, pair p, int64_t n, int32_t output, part *to)
{
    const int64_t first = n * j->sparse->block_queries, left = j->sparse->at.queries - first;
    const int64_t count = left < j->sparse->block_queries ? left : j->sparse->block_queries;
    for (p.i = first; p.i < first + count; p.i++) {
        if (!is_visible(j, &p))
            continue;
        const long double weight = weigh(j, &p);
        if (output == DV)
            add_part(j, row_of(DOUT, &p), weight, to);
        else
            add_part(j, row_of(TN_ATTENTION_SPARSE_Q, &p), slope_of(j, &p, weight), to);
    }
}

/* Computes a part of a row of DK or DV. */
static void compute_dk_or_dv(const job *j, pair p, int32_t output, part *to)
{
    const tn_attention_sparse_op *sparse = j->sparse;
    const int64_t block = p.j / sparse->block_keys, heads = sparse->at.heads / sparse->at.groups;
    const bool valid =
        p.j - block * sparse->block_keys < tn_attention_sparse_size(j->run, p.b, block);
    for (p.h = p.group * heads; valid && p.h < (p.group + 1) * heads; p.h++) {
        for (int64_t n = 0; n < sparse->query_blocks; n++) {
            if (is_listed(j, &p, n, block))
                add_queries(j, p, n, output, to);
        }
    }
    write_part(j, row_of(output, &p), to);
}

static void compute_row(const job *j, const pair *p, int32_t output)
{
    const int64_t size = output == DV ? j->sparse->at.value_size : j->sparse->at.size;
    for (int64_t d = 0; d < size; d += TNI_REF_PIECE) {
        part to = {.d = d, .count = size - d < TNI_REF_PIECE ? size - d : TNI_REF_PIECE};
        if (output == DQ)
            compute_dq(j, *p, &to);
        else
            compute_dk_or_dv(j, *p, output, &to);
    }
}

/* The rows of DQ, then those of DK and DV. */
static void compute_rows(void *user, int64_t first, int64_t end)
{
    const job *j = user;
    const tn_attention_op *at = &j->sparse->at;
    const int64_t queries = at->batch * at->heads * at->queries;
    for (int64_t n = first; n < end; n++) {
        pair p = {0};
        if (n < queries) {
            p.b = n / at->queries / at->heads;
            p.h = n / at->queries % at->heads;
            p.group = p.h / (at->heads / at->groups);
            p.i = n % at->queries;
            compute_row(j, &p, DQ);
            continue;
        }
        const int64_t key = n - queries;
        p.b = key / at->keys / at->groups;
        p.group = key / at->keys % at->groups;
        p.j = key % at->keys;
        compute_row(j, &p, DK);
        compute_row(j, &p, DV);
    }
}

static tn_status run_sparse_backward(const tn_run *run, tn_error *err)
{
    job j = {.run = run, .sparse = TN_PARAMS(run->op, attention_sparse)};
    const tn_attention_op *at = &j.sparse->at;
    const tn_status status = tn_attention_sparse_check(run, err);
    if (status)
        return status;
    for (int32_t o = 0; o < TN_ATTENTION_SPARSE_BACKWARD_OPERANDS; o++)
        j.element[o] = tni_ref_operand_element(run->op, o);
    tni_ref_share(run, at->batch * (at->heads * at->queries + at->groups * at->keys),
                  4 * (at->size + at->value_size) * (at->keys + 1), compute_rows, &j);
    return TN_OK;
}

const tn_kernel_row tni_ref_attention_sparse_backward = {
    .struct_size = sizeof tni_ref_attention_sparse_backward,
    .name = "cpu.attention-sparse-backward.ref",
    .platform = "cpu",
    .backend = "ref",
    .op = TN_OP_ATTENTION_SPARSE_BACKWARD,
    .version = 1,
    .dtypes = tni_ref_float_dtypes,
    .numerics = TNI_REF_REPEATS,
    .honours = TN_ATTENTION_SPARSE_USES_WINDOW | TN_ATTENTION_SPARSE_USES_MASK |
               TN_ATTENTION_SPARSE_USES_LISTS | TN_ATTENTION_SPARSE_USES_SIZES |
               TN_ATTENTION_SPARSE_USES_GROUPS | TN_ATTENTION_SPARSE_USES_VALUE_SIZE |
               TN_ATTENTION_SPARSE_USES_STRIDES | TN_ATTENTION_SPARSE_USES_OUT_DTYPE,
    .flops_per_us = 100,
    .bytes_per_us = 500,
    .overhead_us = 1,
    .run = run_sparse_backward,
};
