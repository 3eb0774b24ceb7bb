/* Products of large matrices: both operands are packed, a part at a time, into panels that lie as an
 * instruction set's tiles read them, and blocks of out are summed up from panels.
 *
 * What is the same for all instruction sets and dtypes is here: which parts are packed when, what is
 * shared out to threads, where unfinished sums lie. What differs is a table, tni_mm_set: a row of
 * kernels/ for each pair of instruction set and input dtype.
 *
 * A sum over k is made in chunks of `depth` products. A tile begins each chunk with zeros and adds the
 * chunk's sum to those before it. Nothing else decides in which order numbers are added: not m, n, the
 * batch, threads, or the sizes of caches. So a set whose tiles sum a chunk in one order, whatever the
 * tile's height and width and place, is TN_NUM_RUN_TO_RUN and TN_NUM_BATCH_INVARIANT.
 *
 * Thread-safety: sets are constant; a set's functions are called from several threads at once, for
 * panels and blocks that do not overlap. */
#ifndef TENON_BACKENDS_CPU_MATMUL_PACKED_H
#define TENON_BACKENDS_CPU_MATMUL_PACKED_H

#include "../sizes.h"
#include "product.h"

/* Packs a part of one operand into panels. Element (i, p) is at from + i * across + p * along, in bytes;
 * i counts rows of A or columns of B, p counts along k. Panel i / w has the lines i with the same i / w
 * (w is the set's `rows` or `columns`); it begins at to + i / w * panel, a multiple of 64 bytes. */
typedef struct tni_mm_pack {
    const char *from;
    int64_t across, along; /* bytes; any sign, any size                              */
    int64_t lines;         /* to pack; more than 0, no limit                          */
    int64_t depth;         /* elements of each line: 1 to the set's depth             */
    char *to;
    int64_t panel; /* bytes from panel to panel: tni_mm_panel of the set              */
} tni_mm_pack;

/* Lines of A from row `line` and column `step` on, or of B from column `line` and row `step` on; how many, and where
 * they go, is for the caller to say. */
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

/* All that happens to a sum before it is written:
 *     out = activation(alpha * sum + beta * out + bias), rounded once to out's dtype.
 * With beta 0, out is not read. Strides are in elements. finish.h does it to tiles of f32 and f64. */
typedef struct tni_mm_finish {
    tn_dtype out_dtype;
    tn_dtype bias_dtype; /* 0: there is none    */
    int32_t activation;  /* TN_ACT_...          */
    bool plain;          /* out is of the set's acc, its columns together, and out = sum */
    double alpha, beta;
    int64_t out_row, out_column;
    int64_t bias_row, bias_column;
} tni_mm_finish;

/* A block of out: rows by columns tiles, for one chunk of k. The first element of the block is at the
 * first line of both the panels `a` and the panels `b`. */
typedef struct tni_mm_block {
    const char *a, *b;           /* packed panels                                               */
    int64_t a_panel, b_panel;    /* bytes from panel to panel                                   */
    const char *next_a, *next_b; /* panels that come after these, to be fetched; or NULL      */
    int64_t rows, columns;       /* of out; the last panels may be used in part                 */
    int64_t depth;               /* elements along k, as they were packed; 0 when k is: then a and b
                                 are not read                                                */
    bool first, last;            /* chunk of k                                                  */
    char *sums;                  /* of the chunks before, dtype acc, columns together; may be out */
    int64_t sums_row;            /* elements from row to row of sums                            */
    const tni_mm_finish *finish;
    char *out;        /* of the block's first element */
    const char *bias; /* likewise; or NULL            */
    int64_t a_row; /* unless 0, `a` is A where it lies, together along k: bytes from row to row */
} tni_mm_block;

/* Where the element of a block at that row and column is in out. */
static inline char *tni_mm_out_at(const tni_mm_block *job, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    return job->out + (row * f->out_row + column * f->out_column) * dtype_bytes(f->out_dtype);
}

/* The same of the bias; NULL when there is none. */
static inline const char *tni_mm_bias_at(const tni_mm_block *job, int64_t row, int64_t column)
{
    const tni_mm_finish *f = job->finish;
    const int64_t at = row * f->bias_row + column * f->bias_column;
    return job->bias ? job->bias + at * dtype_bytes(f->bias_dtype) : NULL;
}

typedef struct tni_mm_set {
    int32_t rows, columns;  /* of a tile: lines of a panel of A, of B                          */
    int32_t depth;          /* products of a chunk; a multiple of group                        */
    int32_t group;          /* elements along k that lie together in a panel                   */
    int32_t a_size, b_size; /* bytes of a packed element                                       */
    int32_t a_more, b_more; /* further bytes of a panel, after depth rounded up to a group      */
    tn_dtype acc;           /* of sums                                                         */
    int32_t acc_size;       /* bytes of one                                                    */
    double cost;            /* about how long a multiplication takes, in ns: what is worth a task */

    /* Fill whole panels: lines up to the next multiple of a panel's, and elements up to the next
     * multiple of `group`, are zeros. */
    void (*pack_a)(const tni_mm_pack *job);
    void (*pack_b)(const tni_mm_pack *job);

    /* Sums up the chunk of every element of the block. Unless `first`, what is in sums is added. Then,
     * unless `last`, the result goes to sums; of the last chunk it is finished and goes to out. Writes
     * nothing beside the block. */
    void (*block)(const tni_mm_block *job);

    /* Blocks read A where it lies, too: of a tile's rows, or at most half of them. */
    bool in_place;
} tni_mm_set;

/* Bytes of a panel of `lines` lines for `depth` elements: a multiple of 64. */
static inline int64_t tni_mm_panel(int64_t lines, int64_t depth, int64_t group, int64_t size,
                                   int64_t more)
{
    return round_up(lines * round_up(depth, group) * size + more, 64);
}

/* What a product asks of its sums, when they are of dtype `acc`. */
void tni_mm_finish_make(const tni_mm_product *product, tn_dtype acc, tni_mm_finish *out);

/* Bytes of scratch memory that a run needs; a function of the product and, for batches, of how many
 * matrices are computed at once. `threads` is that of the query. */
uint64_t tni_mm_packed_workspace(const tni_mm_set *set, const tni_mm_product *product,
                                 int32_t threads);

/* Runs it, with run->workspace of that size. Cannot fail. */
void tni_mm_packed_run(const tni_mm_set *set, const tni_mm_product *product, const tn_run *run);

#endif
