/* A run of attention as kernels of all instruction sets and dtypes read it: where rows lie, what is seen, what
 * masks add, which weights dropout keeps.
 *
 * A unit is what shares keys and values: one group of one sequence. Its rows are the queries of all its heads,
 * those of one query together: row r is query r / sharers of head group * sharers + r % sharers.
 *
 * Thread-safety: functions of their arguments, from any thread. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_PROBLEM_H
#define TENON_BACKENDS_CPU_ATTENTION_PROBLEM_H

#include "tenon/module/attention.h"

#include <stdbool.h>

/* An operand; strides are in bytes. */
typedef struct tni_at_side {
    char *data;
    tn_dtype dtype; /* 0: there is none */
    int64_t size;   /* bytes of an element */
    int64_t batch, head, row, element;
} tni_at_side;

typedef struct tni_at_problem {
    const tn_run *run;
    const tn_attention_op *at;
    tni_at_side q, k, v, out, lse, mask;
    tni_at_side dout, dq, dk, dv; /* of attention-backward */
    int64_t sharers;              /* heads of a group */
    int64_t units;
    bool packed;  /* sequences lie one behind the other, each with queries of its own number */
    bool natural; /* scores are not just products by a positive number: softcap, a mask of floats */
} tni_at_problem;

typedef struct tni_at_unit {
    tn_sequence in;
    int64_t b, group;
    int64_t rows;
    int64_t from, to; /* keys that any row sees by its place */
} tni_at_unit;

/* Of the op alone, `run` being NULL, no side has data. */
void tni_at_read(const tn_op *op, const tn_run *run, tni_at_problem *out);

/* What tn_attention_check passed. */
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

/* The first element of a row of q, out, dout, dq, or a row's element of lse. */
static inline char *tni_at_row(const tni_at_problem *problem, const tni_at_unit *unit,
                               const tni_at_side *side, int64_t row)
{
    return side->data + unit->in.batch * side->batch +
           tni_at_head_of(problem, unit, row) * side->head +
           (unit->in.first_query + tni_at_query_of(problem, row)) * side->row;
}

/* The first element of key j's row of k, v, dk or dv. */
char *tni_at_key(const tni_at_problem *problem, const tni_at_unit *unit, const tni_at_side *side,
                 int64_t j);

/* The same of `count` keys, which are seen by some place. */
void tni_at_keys(const tni_at_problem *problem, const tni_at_unit *unit, const tni_at_side *side,
                 int64_t j, int64_t count, const char **out);

/* The keys that any of some rows sees by its place; none: *out_from == *out_to. */
void tni_at_reach(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row, int64_t rows,
                  int64_t *out_from, int64_t *out_to);

/* Whether each of some rows sees each of some keys by its place. */
bool tni_at_all_seen(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                     int64_t rows, int64_t key, int64_t keys);

/* What is added to the scores of a row and `count` keys: -infinity where a key is not seen, by its place,
 * by a mask or as it is behind the last one. A mask is read only where places are seen. */
void tni_at_bias_f32(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                     int64_t key, int64_t count, float *out);
void tni_at_bias_f64(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row,
                     int64_t key, int64_t count, double *out);

/* Whether a row's weight of key j is kept, for `count` keys; the core's rule, faster. */
void tni_at_keeps(const tni_at_problem *problem, const tni_at_unit *unit, int64_t row, int64_t key,
                  int64_t count, uint8_t *out);

/* A number of f16, bf16, f32 or f64, which need not be aligned. */
double tni_at_number(tn_dtype dtype, const char *at);

/* A head's sink, -infinity without one. */
double tni_at_sink(const tni_at_problem *problem, int64_t head);

#endif
