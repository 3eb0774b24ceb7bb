/* Steps of bf16 are split into items: 32 rows by up to 128 keys, whose scores are turned into
 * weights together. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LOW_ITEMS_H
#define TENON_BACKENDS_CPU_ATTENTION_LOW_ITEMS_H

#include "../shared/sizes.h"
#include "attention_low_weights.h"

/* Keys of an item. Items end at multiples of it, so that the result does not depend on where steps
 * begin. */
enum { ITEM_KEYS = 128 };

typedef struct item {
    int64_t row, rows; /* of the step */
    int64_t key, keys; /* of the sequence; keys are whole squares */
    const char *q, *k, *v;
    float *most, *sums, *values;
    float *scores; /* a line of 32 for each key */
    char *weights; /* a line of 32 pairs for each two */
} item;

enum { SCORES_BYTES = ITEM_KEYS * SIDE * 4, WEIGHTS_BYTES = ITEM_KEYS * SIDE * 2 };

/* Remaining multiplications: the scores of one item, then the values of another. */
typedef struct work {
    int64_t steps, parts;    /* squares of a row of Q, and of one of V */
    int64_t v_panel;         /* bytes */
    const item *next, *last; /* NULL: none, or done */
    int64_t part, step;      /* of keys and elements; of columns and keys */
} work;

/* Advances to the next square, of `parts` by `steps`. Returns true after the last step of a part;
 * after the last part the counters are reset and *of is NULL. */
INLINE bool go_on(work *w, int64_t parts, int64_t steps, const item **of)
{
    if (++w->step < steps)
        return false;
    w->step = 0;
    if (++w->part == parts) {
        w->part = 0;
        *of = NULL;
    }
    return true;
}

#endif
