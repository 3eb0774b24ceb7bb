/* A run of attention as the kernels of all instruction sets and dtypes read it: addresses of rows,
 * visible keys, mask values, and the weights that dropout keeps.
 *
 * A unit is a set of rows that share keys and values: one group of one sequence. Its rows are the
 * queries of all its heads, grouped by query: row r is query r / sharers of head group * sharers +
 * r % sharers.
 *
 * Thread-safety: functions of their arguments, from any thread. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_CPU_PROBLEM_H
#define TENON_BACKENDS_CPU_ATTENTION_CPU_PROBLEM_H

#include "tenon/module/attention.h"

#include <stdbool.h>

/* An operand; strides are in bytes. */
typedef struct tni_at_side {
    char *data;
    tn_dtype dtype; /* 0: absent */
    int64_t size;   /* bytes of an element */
    int64_t batch, head, row, element;
} tni_at_side;

typedef struct tni_at_problem {
    const tn_run *run;
    const tn_attention_op *at;
    tni_at_side q, k, v, out, lse, mask;
    tni_at_side dout, dq, dk, dv; /* of a backward pass */
    int64_t sharers;              /* heads of a group */
    int64_t units;
    bool packed;  /* sequences are concatenated, each with its own number of queries */
    bool ordered; /* units have an `order` */
    bool natural; /* scores are not just products times a positive number: softcap, float mask */
    bool excludes_keys; /* keys may not count for some rows: mask, window, dropout, listed blocks */
} tni_at_problem;

typedef struct tni_at_unit {
    tn_sequence in;
    int64_t b, group;
    /* attention-sparse: of slot 0, an i32: the query and the key that a slot is; NULL: slots are
     * queries and keys. */
    const char *order;
    int64_t order_step; /* bytes */
    int64_t rows;
    int64_t from, to; /* keys that any row sees by position */
} tni_at_unit;

/* If `run` is NULL, only the op is read, and no side has data. The op may be of attention-sparse or
 * its backward pass, which have the parameters, Q, K, V, OUT, LSE and gradients of attention; their
 * tables are not read. */
void tni_at_read(const tn_op *op, const tn_run *run, tni_at_problem *out);

/* The run must have passed tn_attention_check. */
void tni_at_unit_read(const tni_at_problem *problem, int64_t index, tni_at_unit *out);

static inline int64_t tni_at_query_of(const tni_at_problem *problem, int64_t row)
{
    return row / problem->sharers;
}

static inline int64_t tni_at_head_of(const tni_at_problem *problem, const tni_at_unit *unit,
                                     int64_t row)
{
    return unit->group * problem->sharers + row % problem->sharers;
}

/* The query or key of a slot. */
static inline int64_t tni_at_token(const tni_at_unit *unit, int64_t slot)
{
    int32_t token;
    if (!unit->order)
        return slot;
    memcpy(&token, unit->order + slot * unit->order_step, sizeof token);
    return token;
}

/* Address of the first element of a row of q, out, dout or dq, or of a row's element of lse. */
static inline char *tni_at_row(const tni_at_problem *problem, const tni_at_unit *unit,
                               const tni_at_side *side, int64_t row)
{
    return side->data + unit->in.batch * side->batch +
           tni_at_head_of(problem, unit, row) * side->head +
           (unit->in.first_query + tni_at_token(unit, tni_at_query_of(problem, row))) * side->row;
}

/* Address of the first element of key j's row of k, v, dk or dv. */
char *tni_at_key(const tni_at_problem *problem, const tni_at_unit *unit, const tni_at_side *side,
                 int64_t j);

/* Addresses of `count` keys, which must be visible to some row by position. */
void tni_at_keys(const tni_at_problem *problem, const tni_at_unit *unit, const tni_at_side *side,
                 int64_t j, int64_t count, const char **out);

/* The keys that any of some rows sees by position; if none, *out_from == *out_to. */
void tni_at_reach(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row, int64_t rows,
                  int64_t *out_from, int64_t *out_to);

/* Whether each of some rows sees each of some keys by position. */
bool tni_at_all_seen(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                     int64_t rows, int64_t key, int64_t keys);

/* Writes the bias of a row and `count` keys: -infinity if a key is not visible because of its
 * position, a mask, or the end of the keys. A mask is read only at visible positions. */
void tni_at_bias_f32(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                     int64_t key, int64_t count, float *out);
void tni_at_bias_f64(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                     int64_t key, int64_t count, double *out);

/* Writes, for `count` keys, whether dropout keeps a row's weight; the core's rule, but faster. */
void tni_at_keeps(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row, int64_t key,
                  int64_t count, uint8_t *out);

/* Whether a row sees a key and dropout keeps its weight; the key's bias is rounded to f32. */
bool tni_at_counts(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                   int64_t key);

/* Finds the next value that is not finite, from *io_column of key *io_key on, in keys before `to`.
 * Returns false if none exists. */
bool tni_at_next_nonfinite(const tni_at_problem *problem, const tni_at_unit *unit, int64_t to,
                           int64_t *io_key, int64_t *io_column, double *out);

/* Reads a number of f16, bf16, f32 or f64, of any alignment. */
double tni_at_number(tn_dtype dtype, const char *at);

/* A head's sink; -infinity if none exists. */
double tni_at_sink(const tni_at_problem *problem, int64_t head);

#endif
