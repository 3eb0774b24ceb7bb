/* Iterates over operands of any strides, in pieces that are distributed to threads. */
#ifndef TNI_REF_WALK_H
#define TNI_REF_WALK_H

#include "tenon/module/kernel.h"

/* Maximum elements of a piece in elementwise ops. */
enum { TNI_REF_PIECE = 512 };

typedef struct tni_ref_walk {
    int64_t rows;   /* the product of the shape */
    int64_t size;   /* elements of a row */
    int64_t pieces; /* pieces of a row */
    int64_t work;   /* estimated cost of a piece, in elements */
    int32_t rank;   /* dimensions of the rows, the innermost first */
    int32_t count;  /* of operands */
    int64_t shape[TN_OP_RANK_MAX];
    int64_t step[TN_OP_OPERANDS_MAX][TN_OP_RANK_MAX]; /* in bytes */
    int64_t along[TN_OP_OPERANDS_MAX];                /* between elements of a row, in bytes */
} tni_ref_walk;

/* Computes `count` elements of a row, or the row. `at` has the start of each operand, NULL if it is
 * absent or empty. Called from several threads at once. */
typedef void tni_ref_piece_fn(void *job, char *const *at, int64_t count);

/* Over all elements of out; neighboring dimensions are merged if strides allow it. */
void tni_ref_walk_each(const tn_op *op, tni_ref_walk *out);

/* Over all dimensions of out except the `last` ones; `along` is the stride of the last
 * dimension. */
void tni_ref_walk_rows(const tn_op *op, int32_t last, int64_t work, tni_ref_walk *out);

void tni_ref_walk_run(const tni_ref_walk *walk, const tn_run *run, tni_ref_piece_fn *piece,
                      void *job);

/* Like tni_ref_walk_run, on the calling thread and in order; `data` are the operands' first
 * elements. */
void tni_ref_walk_in_order(const tni_ref_walk *walk, char *const *data, tni_ref_piece_fn *piece,
                           void *job);

/* Runs a loop over [0, count) whose iterations cost about `work` elements each: task(user, first,
 * end) gets the part of one thread. Small loops stay on the calling thread. */
typedef void tni_ref_share_fn(void *user, int64_t first, int64_t end);
void tni_ref_share(const tn_run *run, int64_t count, int64_t work, tni_ref_share_fn *task,
                   void *user);

#endif
