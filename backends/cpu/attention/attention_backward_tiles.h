/* Parts of attention-backward that its passes over all pairs and over listed blocks share: packing,
 * combining a tile of rows with some keys, and writing.
 *
 * A unit is a set of keys that some rows share, with one memory block: packed K and V with their
 * sums of gradients, and packed tiles of rows. A tile begins in a whole panel. Threads may combine
 * tiles with keys at the same time if no two of them have the same tile or the same keys.
 *
 * Thread-safety: functions of their arguments, from any thread. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_BACKWARD_TILES_H
#define TENON_BACKENDS_CPU_ATTENTION_BACKWARD_TILES_H

#include "attention_backward_kernels.h"

/* Offsets in bytes within the memory of a unit and of a thread (a desk). */
typedef struct tni_at_back_layout {
    int64_t key_blocks;               /* of TNI_AT_BACK_KEYS keys, which are packed together */
    int64_t size_row, value_row;      /* bytes of a row as written by `pack_rows` */
    int64_t sums_row, value_sums_row; /* elements of a row of sums */
    int64_t size_transposed, value_transposed; /* bytes of a transposed panel */
    int64_t rows_panel, keys_panel;            /* bytes of a panel of lines */
    int64_t k, v, k_lines;
    int64_t q_transposed, q_lines, dout_transposed, dout_lines;
    int64_t less, delta;
    int64_t blind_rows; /* of each tile: whether one of its rows saw nothing */
    int64_t nonfinite_rows,
        nonfinite_keys; /* of each tile: not finite in Q or dout; of key blocks */
    int64_t dq, dk, dv;
    int64_t unit;                     /* bytes of a unit */
    int64_t slopes, bias, keep, room; /* of a desk */
    int64_t desk;                     /* its bytes */
} tni_at_back_layout;

typedef struct tni_at_back_pass {
    const tni_at_back_set *set;
    const tni_at_problem *problem; /* for keys */
    const tni_at_back_layout *layout;
} tni_at_back_pass;

/* The bias of a row, in the set's real type. */
typedef union tni_at_back_bias {
    double f64[TNI_AT_BACK_KEYS];
    float f32[TNI_AT_BACK_KEYS];
} tni_at_back_bias;

/* Rows that are combined with keys together. */
typedef struct tni_at_back_tile {
    const tni_at_problem *problem; /* for rows */
    const tni_at_unit *unit;       /* of that problem */
    int64_t row, rows;             /* of that unit; at most TNI_AT_BACK_ROWS rows */
    int64_t index;                 /* of the tile, in the memory block */
    int64_t slot;                  /* of its first row there: at the begin of a panel */
    /* Sets the bias of keys that a row does not see, besides those that its problem excludes, to
     * -infinity. NULL if no other key is excluded. */
    void (*exclude)(const void *user, int64_t row, int64_t key, int64_t keys, tni_at_back_bias *io);
    const void *user;
} tni_at_back_tile;

/* Makes the layout for `slots` packed rows, whole panels, in `tiles` tiles. Returns false if the
 * number of bytes overflows. */
bool tni_at_back_layout_make(const tni_at_back_set *set, const tni_at_problem *problem,
                             int64_t slots, int64_t tiles, tni_at_back_layout *out);

/* Returns how many of `units` units are packed at the same time: enough for all threads if each unit
 * gives `tasks` tasks, and as many as a limit of memory permits; at least 1. */
int64_t tni_at_back_wave(const tni_at_back_layout *layout, int64_t units, int64_t tasks,
                         int32_t threads);

/* Pack a tile, or a block of keys, and set its sums to 0. */
void tni_at_back_begin_tile(const tni_at_back_pass *pass, const tni_at_back_tile *tile,
                            char *memory, char *desk);
void tni_at_back_begin_keys(const tni_at_back_pass *pass, const tni_at_unit *unit, int64_t block,
                            char *memory, char *desk);

/* Combines a tile with keys `from` to `to`, at most TNI_AT_BACK_KEYS. */
void tni_at_back_meet(const tni_at_back_pass *pass, const tni_at_back_tile *tile, int64_t from,
                      int64_t to, char *memory, char *desk);

/* Write dq of a tile, or dk and dv of a block of keys. */
void tni_at_back_write_tile(const tni_at_back_pass *pass, const tni_at_back_tile *tile,
                            const char *memory);
void tni_at_back_write_keys(const tni_at_back_pass *pass, const tni_at_unit *unit, int64_t block,
                            const char *memory);

/* Sets an element of an array of the set's real type. */
static inline void tni_at_back_put(const tni_at_back_set *set, void *to, int64_t index,
                                   double value)
{
    if (set->real == sizeof(double))
        ((double *)to)[index] = value;
    else
        ((float *)to)[index] = (float)value;
}

#endif
