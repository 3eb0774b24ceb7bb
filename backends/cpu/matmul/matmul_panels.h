/* Products of large matrices: both operands are packed, a part at a time, into panels in the order
 * in which the micro-kernels of an instruction set read them, and blocks of out are summed from
 * panels.
 *
 * This file has what all instruction sets and dtypes share: which parts are packed when, how work
 * is split among threads, where partial sums are kept. The rest is a table, tni_mm_set: one for
 * each pair of instruction set and input dtype.
 *
 * A sum over k is made in chunks of `depth` products. A tile starts each chunk at zero and adds the
 * chunk's sum to those before it. Nothing else affects the order of summation: not m, n, the batch,
 * threads, or cache sizes. So a set whose tiles sum a chunk in the same order for every tile
 * height, width and position is TN_NUM_RUN_TO_RUN and TN_NUM_BATCH_INVARIANT.
 *
 * Thread-safety: sets are constant; a set's functions are called from several threads at once, for
 * panels and blocks that do not overlap. */
#ifndef TENON_BACKENDS_CPU_MATMUL_PANELS_H
#define TENON_BACKENDS_CPU_MATMUL_PANELS_H

#include "../shared/sizes.h"
#include "matmul_product.h"

/* Packs a part of one operand into panels. Element (i, p) is at from + i * across + p * along, in
 * bytes; i counts rows of A or columns of B, p counts along k. Panel i / w has the lines i with the
 * same i / w (w is the set's `rows` or `columns`); it begins at to + i / w * panel, a multiple of
 * 64 bytes. */
typedef struct tni_mm_pack {
    const char *from;
    int64_t across, along; /* bytes; any sign, any value */
    int64_t lines;         /* to pack; more than 0, no limit */
    int64_t depth;         /* elements of each line: 1 to the set's depth */
    char *to;
    int64_t panel; /* bytes from panel to panel: tni_mm_panel of the set */
} tni_mm_pack;

/* Prefetches `bytes` bytes, `distance` after `from`, which are packed soon. Processors do not predict
 * reads of short pieces of rows that are far apart. */
static inline void tni_mm_fetch_ahead(const char *from, int64_t distance, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)((uintptr_t)from + (uintptr_t)(distance + i)), 0, 2);
}

/* Describes the lines of A from row `line` and column `step` on, or of B from column `line` and row
 * `step` on. The caller must set their number and destination. */
static inline tni_mm_pack tni_mm_pack_a(const tni_mm_side *a, const char *data, int64_t line,
                                        int64_t step)
{
    return (tni_mm_pack){.from = data + (line * a->row + step * a->column) * a->size,
                         .across = a->row * a->size,
                         .along = a->column * a->size};
}

static inline tni_mm_pack tni_mm_pack_b(const tni_mm_side *b, const char *data, int64_t line,
                                        int64_t step)
{
    return (tni_mm_pack){.from = data + (step * b->row + line * b->column) * b->size,
                         .across = b->column * b->size,
                         .along = b->row * b->size};
}

/* The epilogue that is applied to a sum before it is written:
 *     out = activation(alpha * sum + beta * out + bias), rounded once to out's dtype.
 * With beta 0, out is not read. Strides are in elements. matmul_finish.h implements it for tiles
 * of f32 and f64. */
typedef struct tni_mm_finish {
    tn_dtype out_dtype;
    tn_dtype bias_dtype; /* 0: none */
    int32_t activation;  /* TN_ACT_... */
    bool plain;          /* out has the set's acc dtype and contiguous rows, and out = sum */
    double alpha, beta;
    int64_t out_row, out_column;
    int64_t bias_row, bias_column;
} tni_mm_finish;

/* A block of out, for one chunk of k. The first element of the block is in the first line of both
 * the panels `a` and the panels `b`. */
typedef struct tni_mm_block {
    const char *a, *b;           /* packed panels */
    int64_t a_panel, b_panel;    /* bytes from panel to panel */
    const char *next_a, *next_b; /* next panels, to prefetch; or NULL */
    int64_t rows, columns;       /* of out; the last panels may be used partly */
    int64_t depth;               /* along k, as packed; 0 if k is 0: then a and b are not read */
    bool first, last;            /* chunk of k */
    char *sums;       /* of the previous chunks, dtype acc, contiguous rows; may be out */
    int64_t sums_row; /* row stride of sums, in elements */
    const tni_mm_finish *finish;
    char *out;        /* at the block's first element */
    const char *bias; /* likewise; or NULL */
    int64_t a_row; /* unless 0, `a` is the unpacked A, contiguous along k: bytes from row to row */
} tni_mm_block;

/* Address in out of the element of a block at this row and column. */
static inline char *tni_mm_out_at(const tni_mm_block *job, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    return job->out + (row * f->out_row + column * f->out_column) * dtype_bytes(f->out_dtype);
}

/* Address in the bias of that element; NULL if there is no bias. */
static inline const char *tni_mm_bias_at(const tni_mm_block *job, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    const int64_t at = row * f->bias_row + column * f->bias_column;
    return job->bias ? job->bias + at * dtype_bytes(f->bias_dtype) : NULL;
}

typedef struct tni_mm_set {
    int32_t rows, columns;  /* of a tile: lines of a panel of A, of B */
    int32_t depth;          /* products of a chunk; a multiple of group */
    int32_t group;          /* consecutive elements along k that are together in a panel */
    int32_t a_size, b_size; /* bytes of a packed element */
    int32_t a_more, b_more; /* additional bytes of a panel, after depth rounded up to a group */
    tn_dtype acc;           /* of sums */
    int32_t acc_size;       /* bytes of one */
    double cost;            /* estimated ns of a multiplication, to choose task sizes */

    /* Fill whole panels: lines up to the next multiple of the panel's lines, and elements up to the
     * next multiple of `group`, are zeros. */
    void (*pack_a)(const tni_mm_pack *job);
    void (*pack_b)(const tni_mm_pack *job);

    /* Sums the chunk of every element of the block. Unless `first`, adds the previous `sums`.
     * Unless `last`, writes the result to `sums`; for the last chunk, applies the epilogue and
     * writes to out. Writes nothing outside the block. */
    void (*block)(const tni_mm_block *job);

    /* Blocks can also read A in place, if they have the rows of a tile, or at most half of them. */
    bool in_place;
} tni_mm_set;

/* Bytes of a panel of `lines` lines for `depth` elements: a multiple of 64. */
static inline int64_t tni_mm_panel(int64_t lines, int64_t depth, int64_t group, int64_t size,
                                   int64_t more)
{
    return round_up(lines * round_up(depth, group) * size + more, 64);
}

/* Describes the epilogue of a product whose sums have dtype `acc`. */
void tni_mm_finish_make(const tni_mm_product *product, tn_dtype acc, tni_mm_finish *out);

/* Bytes of workspace that a run needs; depends on the product and, for batches, on how many
 * matrices are computed at once. `threads` is that of the query. */
uint64_t tni_mm_packed_workspace(const tni_mm_set *set, const tni_mm_product *product,
                                 int32_t threads);

/* Computes the product, with run->workspace of that size. Cannot fail. */
void tni_mm_packed_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run);

#endif
