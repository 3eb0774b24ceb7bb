/* What an instruction set has for attention of one dtype. All that does not depend on either is in forward.c:
 * it hands out panels of rows and panels of keys, and says which of the scores count.
 *
 * A step takes some rows, with what they have come to, through some keys:
 *
 *     score  = scale q . k, capped, and its bias             greatest = the greatest so far
 *     weight = exp(score - greatest)
 *     sums   = shrink sums + weights                         shrink = exp(greatest before - greatest)
 *     values = shrink values + weights v
 */
#ifndef TENON_BACKENDS_CPU_ATTENTION_KERNELS_H
#define TENON_BACKENDS_CPU_ATTENTION_KERNELS_H

#include "problem.h"

/* Most keys of a panel, most rows of one, and most keys of a block; all sets keep to them. */
enum { TNI_AT_KEYS_MOST = 64, TNI_AT_ROWS_MOST = 256, TNI_AT_BLOCK_MOST = 512 };

/* One panel of keys: rows of K and V, to the forms that the set computes with. Keys that a panel lacks have
 * zeros there. */
typedef struct tni_at_pack {
    const char *const *k, *const *v; /* first elements of the rows               */
    int64_t keys;                    /* that are there, from 1 on                */
    int64_t k_step, v_step;          /* bytes from element to element            */
    int64_t size, value_size;
    char *k_to;
    char *v_to;      /* of the first panel of columns; NULL: V is not packed */
    int64_t v_panel; /* bytes from one of those to the next      */
    char *room;      /* as a step has                            */
} tni_at_pack;

/* What rows have come to. Of a row `sums` has set->lanes numbers, to be added up at the end, and `values`
 * whole panels of columns. `most` is in the set's own measure, -infinity at first; the others are 0. */
typedef struct tni_at_state {
    void *most;
    void *sums;
    void *values;
    int64_t value_row; /* elements from row to row */
} tni_at_state;

typedef struct tni_at_step {
    const tni_at_problem *problem;
    const tni_at_unit *unit;
    int64_t row, rows;       /* of the unit                                                     */
    int64_t key, keys;       /* whole panels from key on, but for `few`                         */
    const char *q;           /* the rows, as `take` left them, or as they are in memory         */
    int64_t q_row;           /* bytes from one to the next                                      */
    const char *k;           /* panels from key on, set->k_panel apart                          */
    const char *v;           /* the first panel of columns, from key on                         */
    int64_t v_panel;         /* bytes from one of those to the next                             */
    int64_t v_line;          /* bytes from key to key                                           */
    const char *const *k_at; /* of `few` instead: rows of K and V as they are                   */
    const char *const *v_at;
    /* Of the set's real; NULL: each row sees each key and nothing is added, but for places that the set
     * looks at itself. Of `few` always there when the problem is natural. */
    const void *bias;
    int64_t bias_row; /* elements from row to row                                                */
    bool nonfinite;   /* some values are not finite: they may not meet weights of keys that do not
                         count for a row, which are 0                                            */
    tni_at_state state;
    char *room; /* tni_at_room bytes, aligned to 64 */
} tni_at_step;

typedef struct tni_at_set {
    int32_t rows;    /* of a panel of rows, at most                           */
    int32_t keys;    /* of a panel of keys: a power of two                    */
    int32_t columns; /* of a panel of V                                       */
    int32_t lanes;   /* numbers of a row's sums                               */
    int32_t real;    /* bytes of the numbers of a state and of a bias         */
    int32_t few;     /* rows of a unit that are computed without packing      */
    int32_t whole;   /* rows that lie together in Q and in a state: panels begin at multiples, and
                        there is room for whole ones                          */
    int32_t panels;  /* of rows, that a task has                              */
    bool looks;      /* steps look at places themselves; a bias is for masks  */
    bool in_place;   /* steps read rows of Q, and of V, at any distance       */
    const struct tni_at_set *thin; /* what few rows are computed by; NULL: this one */
    /* Bytes of a row of Q, a panel of keys, a key in a panel of columns, room of a step. */
    int64_t (*q_row)(int64_t size);
    int64_t (*k_panel)(int64_t size);
    int64_t v_line;
    int64_t room;
    int64_t room_more; /* for each element of a key and of its value, and 32 */
    /* Copies rows of Q. */
    void (*take)(const char *const *from, int64_t step, int64_t size, int64_t rows, char *to);
    /* False when values are not finite. */
    bool (*pack)(const tni_at_pack *job);
    void (*step)(const tni_at_step *step);
    /* A step of few rows and any number of keys up to a block, where elements of rows are together. */
    void (*few_step)(const tni_at_step *step);
    /* The same of f32, for keys and values of 16 bits, which are widened; NULL in other sets. */
    void (*few_step_bf16)(const tni_at_step *step);
    void (*few_step_f16)(const tni_at_step *step);
    /* Adds what rows have come to over other keys. */
    void (*merge)(const tni_at_state *to, const tni_at_state *other, int64_t rows,
                  int64_t value_size);
    /* Of one row, scores with all keys that it may see, in whole panels, become weights; what they come to goes to
     * its `most` and its `sums`, which are as tni_at_state_clear leaves them. A bias may be NULL. NULL in sets whose
     * rows lie together. */
    void (*weigh)(const tni_at_problem *problem, void *scores, const void *bias, int64_t keys,
                  void *most, void *sums);
    /* Writes out and lse of the step's rows. */
    void (*finish)(const tni_at_step *step);
    void (*begin)(void); /* before and after the steps of some rows; may be NULL */
    void (*end)(void);
} tni_at_set;

/* Bytes of a step's room. */
static inline int64_t tni_at_room(const tni_at_set *set, const tn_attention_op *at)
{
    return (set->room + set->room_more * (at->size + at->value_size + 32) + 63) / 64 * 64;
}

/* A bias of the set's real, for a row and some keys. */
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
