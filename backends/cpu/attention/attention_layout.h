/* Layout of attention's workspace, and how its work is split. Everything but `block` depends on the
 * op and the number of threads; `block` depends only on the sizes of rows and on the cache, so that
 * the number of threads does not change the result. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_LAYOUT_H
#define TENON_BACKENDS_CPU_ATTENTION_LAYOUT_H

#include "attention_kernels.h"

typedef struct tni_at_layout {
    int64_t block; /* keys processed at a time: whole panels */
    /* Bytes of a unit's panels; `packed` is their total. */
    int64_t k_panel, k_bytes;
    int64_t v_panel, v_line, v_bytes; /* v_bytes is 0 if V is read in place */
    int64_t packed;
    int64_t piece, pieces; /* panels packed by one task, and packing tasks of a unit */
    /* Memory of a task (the desk): bytes of each part. */
    int64_t q_row, q_bytes; /* q_bytes is 0 if Q is read in place */
    int64_t room_bytes, bias_bytes;
    int64_t most_bytes, sums_bytes, value_row;
    int64_t desk;
    int64_t task_rows, row_tasks; /* rows of a task, and tasks of a unit */
    bool alone;                   /* a task packs and computes a whole unit */
    int64_t wave;                 /* otherwise, units that are packed together */
    int64_t slot, slots;          /* bytes of a slot, and tasks that run concurrently */
    int64_t bytes;                /* total; 0 if no unit is computed from panels */
} tni_at_layout;

/* Bytes of all units that are packed together: the target. */
enum { TNI_AT_WAVE_BYTES = 32 << 20 };

/* Returns false if the number of bytes of a layout would overflow. */
bool tni_at_sizes_fit(const tn_attention_op *at);

/* Returns false if the number of bytes overflows. */
bool tni_at_layout_make(const tni_at_set *set, const tni_at_problem *problem, int32_t threads,
                        tni_at_layout *out);

/* Parts of tni_at_layout_make: the panels of a unit, and the desk of a task of out->task_rows rows. */
void tni_at_layout_panels(const tni_at_set *set, const tni_at_problem *problem, tni_at_layout *out);
void tni_at_layout_desk(const tni_at_set *set, const tni_at_problem *problem, tni_at_layout *out);

/* Keys of a block, for a cache of `cache` bytes. */
int64_t tni_at_block(const tni_at_set *set, const tni_at_problem *problem, int64_t cache);

/* Returns whether a unit is computed from panels; otherwise it is computed as few rows. */
static inline bool tni_at_is_packed(const tni_at_set *set, const tni_at_problem *problem,
                                    int64_t rows)
{
    return rows > set->few || problem->k.element != problem->k.size ||
           problem->v.element != problem->v.size;
}

/* Sets a state to its initial value. */
void tni_at_state_clear(const tni_at_set *set, int64_t rows, const tni_at_state *state);

/* Bytes of a state and its parts for `rows` rows, and elements of a row of its values. */
int64_t tni_at_state_bytes(const tni_at_set *set, int64_t rows, int64_t value_size,
                           int64_t *out_most, int64_t *out_sums, int64_t *out_value_row);

#endif
