/* The kernels of an instruction set for attention of one dtype. The parts that depend on neither
 * are in attention_forward_pass.c: it distributes panels of rows and of keys, and decides which
 * scores count.
 *
 * A step updates the state of some rows with some keys:
 *
 *     score  = scale q . k, capped, and its bias             greatest = the greatest so far
 *     weight = exp(score - greatest)
 *     sums   = shrink sums + weights                         shrink = exp(greatest before - greatest)
 *     values = shrink values + weights v
 */
#ifndef TENON_BACKENDS_CPU_ATTENTION_KERNELS_H
#define TENON_BACKENDS_CPU_ATTENTION_KERNELS_H

#include "attention_cpu_problem.h"

/* Maximum keys of a panel, rows of a panel, and keys of a block, for all sets. */
enum { TNI_AT_KEYS_MOST = 64, TNI_AT_ROWS_MOST = 256, TNI_AT_BLOCK_MOST = 512 };

/* Packs one panel of keys: rows of K and V, into the forms that the set computes with. Missing keys
 * of a panel are filled with zeros. */
typedef struct tni_at_pack {
    const char *const *k, *const *v; /* first elements of the rows */
    int64_t keys;                    /* existing keys, at least 1 */
    int64_t k_step, v_step;          /* bytes from element to element */
    int64_t size, value_size;
    char *k_to;
    char *v_to;      /* of the first panel of columns; NULL: V is not packed */
    int64_t v_panel; /* bytes from one panel to the next */
    char *room;      /* as in a step */
} tni_at_pack;

/* The state of rows. Each row has set->lanes partial `sums`, to be added up at the end, and
 * `values` in whole panels of columns. `most` is in the set's own units, initially -infinity; the
 * others are initially 0. */
typedef struct tni_at_state {
    void *most;
    void *sums;
    void *values;
    int64_t value_row; /* elements from row to row */
} tni_at_state;

typedef struct tni_at_step {
    const tni_at_problem *problem;
    const tni_at_unit *unit;
    int64_t row, rows;       /* of the unit */
    int64_t key, keys;       /* whole panels from key on, except for `few` */
    const char *q;           /* the rows, as written by `pack_rows`, or in place */
    int64_t q_row;           /* bytes from one row to the next */
    const char *k;           /* panels from key on, set->k_panel apart */
    const char *v;           /* the first panel of columns, from key on */
    int64_t v_panel;         /* bytes from one panel to the next */
    int64_t v_line;          /* bytes from key to key */
    const char *const *k_at; /* for `few` instead: rows of K and V in place */
    const char *const *v_at;
    /* In the set's real type. NULL: each row sees each key and nothing is added, except for
     * positions that the set checks itself (`looks`). For `few`, never NULL if the problem is
     * natural. */
    const void *bias;
    int64_t bias_row; /* elements from row to row */
    bool nonfinite;   /* not all values are finite: excluded keys must be skipped */
    tni_at_state state;
    char *room; /* tni_at_room bytes, aligned to 64 */
} tni_at_step;

typedef struct tni_at_set {
    int32_t rows;    /* of a panel of rows, maximum */
    int32_t keys;    /* of a panel of keys: a power of two */
    int32_t columns; /* of a panel of V */
    int32_t lanes;   /* partial sums of a row */
    int32_t real;    /* bytes of the real type of a state and of a bias */
    int32_t few;     /* maximum rows of a unit that are computed without packing */
    int32_t whole;   /* group of rows in Q and states: panels are aligned and padded to it */
    int32_t panels;  /* panels of rows of a task */
    bool looks;      /* steps check positions themselves; a bias is only for masks */
    bool in_place;   /* steps read rows of Q and V in place, at any stride */
    const struct tni_at_set *thin; /* the set for few rows; NULL: this one */
    /* Bytes of a row of Q, of a panel of keys, of a key in a panel of columns, and of a step's
     * `room`. */
    int64_t (*q_row)(int64_t size);
    int64_t (*k_panel)(int64_t size);
    int64_t v_line;
    int64_t room;
    int64_t room_more; /* per element of a key and of its value, plus 32 */
    /* Copies rows of Q. */
    void (*pack_rows)(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to);
    /* Returns false if some values are not finite. */
    bool (*pack)(const tni_at_pack *job);
    void (*step)(const tni_at_step *step);
    /* A step of few rows and any number of keys up to a block; elements of rows must be
     * contiguous. */
    void (*few_step)(const tni_at_step *step);
    /* The same for f32, with 16-bit keys and values, which are widened; NULL in other sets. */
    void (*few_step_bf16)(const tni_at_step *step);
    void (*few_step_f16)(const tni_at_step *step);
    /* Adds the state of rows for other keys. */
    void (*merge)(const tni_at_state *to, const tni_at_state *other, int64_t rows,
                  int64_t value_size);
    /* Turns the scores of one row with all keys that it may see, in whole panels, into weights, and
     * adds them to its `most` and `sums`, which must be as left by tni_at_state_clear. `bias` may
     * be NULL. The function is NULL in sets whose rows are grouped. */
    void (*weigh)(const tni_at_problem *problem, void *scores, const void *bias, int64_t keys,
                  void *most, void *sums);
    /* Writes out and lse of the step's rows. */
    void (*finish)(const tni_at_step *step);
    void (*begin)(void); /* before and after the steps of some rows; may be NULL */
    void (*end)(void);
} tni_at_set;

/* Bytes of a step's `room`. */
static inline int64_t tni_at_room(const tni_at_set *set, const tn_attention_op *at)
{
    return (set->room + set->room_more * (at->size + at->value_size + 32) + 63) / 64 * 64;
}

/* Writes the bias of a row and some keys, in the set's real type. */
static inline void tni_at_bias(const tni_at_set *set, const tni_at_problem *problem,
                               const tni_at_unit *unit, int64_t row, int64_t key, int64_t count,
                               void *out)
{
    if (set->real == sizeof(double))
        tni_at_bias_f64(problem, unit, row, key, count, out);
    else
        tni_at_bias_f32(problem, unit, row, key, count, out);
}

#endif
