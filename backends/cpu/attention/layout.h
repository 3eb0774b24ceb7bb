/* What attention's scratch memory consists of, and how its work is cut. All of it but `block` is a function
 * of the op and the number of threads; `block` is one of the sizes of rows and the cache, so that threads
 * change nothing that is computed. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LAYOUT_H
#define TENON_BACKENDS_CPU_ATTENTION_LAYOUT_H

#include "kernels.h"

typedef struct tni_at_layout {
    int64_t block; /* keys that rows go through at a time: whole panels */
    /* Bytes of a unit's panels, which are `packed` in all. */
    int64_t k_panel, k_bytes;
    int64_t v_panel, v_line, v_bytes; /* the last is 0 when V stays where it is */
    int64_t packed;
    int64_t piece, pieces; /* panels that are packed by one task, and tasks of a unit */
    /* A task's desk: bytes of each thing on it. */
    int64_t q_row, q_bytes; /* the last is 0 when Q stays where it is */
    int64_t room_bytes, bias_bytes;
    int64_t most_bytes, sums_bytes, value_row;
    int64_t desk;
    int64_t task_rows, row_tasks; /* rows of a task, and tasks of a unit            */
    bool alone;                   /* a task packs and computes a whole unit         */
    int64_t wave;                 /* units that are packed together, if not         */
    int64_t slot, slots;          /* bytes of one, and tasks that run side by side  */
    int64_t bytes;                /* in all; 0 when no unit is computed from panels */
} tni_at_layout;

/* False when the bytes cannot be counted. */
bool tni_at_layout_make(const tni_at_set *set, const tni_at_problem *problem, int32_t threads,
                        tni_at_layout *out);

/* Keys of a block, with a cache of so many bytes. */
int64_t tni_at_block(const tni_at_set *set, const tni_at_problem *problem, int64_t cache);

/* Whether a unit is computed from panels, or else by few rows. */
static inline bool tni_at_is_packed(const tni_at_set *set, const tni_at_problem *problem,
                                    int64_t rows)
{
    return rows > set->few || problem->k.element != problem->k.size ||
           problem->v.element != problem->v.size;
}

/* As it is before the first step. */
void tni_at_state_clear(const tni_at_set *set, int64_t rows, const tni_at_state *state);

/* Bytes of a state's parts, for so many rows, and elements of a row of its values. */
int64_t tni_at_state_bytes(const tni_at_set *set, int64_t rows, int64_t value_size,
                           int64_t *out_most, int64_t *out_sums, int64_t *out_value_row);

#endif
