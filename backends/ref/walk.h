/* Walking over operands of any strides, in pieces that threads share. */
#ifndef TNI_REF_WALK_H
#define TNI_REF_WALK_H

#include "tenon/module/kernel.h"

/* Most elements of a piece, of those that are computed element by element. */
enum { TNI_REF_PIECE = 512 };

typedef struct tni_ref_walk {
    int64_t rows;   /* the product of the shape                                */
    int64_t size;   /* elements of a row                                       */
    int64_t pieces; /* that a row is cut in                                    */
    int64_t work;   /* about how many elements a piece costs                   */
    int32_t rank;   /* dimensions of the rows, the innermost first             */
    int32_t count;  /* of operands                                             */
    int64_t shape[TN_OP_RANK_MAX];
    int64_t step[TN_OP_OPERANDS_MAX][TN_OP_RANK_MAX]; /* in bytes                                */
    int64_t along[TN_OP_OPERANDS_MAX];                /* between elements of a row, in bytes     */
} tni_ref_walk;

/* Computes `count` elements of a row, or the row. `at` has where each operand's begin, NULL for those that
 * are absent or empty. Is called from several threads at once. */
typedef void tni_ref_piece_fn(void *job, char *const *at, int64_t count);

/* Over all elements of out: neighbouring dimensions that lie alike are one. */
void tni_ref_walk_each(const tn_op *op, tni_ref_walk *out);

/* Over all dimensions of out but the `last` ones; `along` is between elements of the last one. */
void tni_ref_walk_rows(const tn_op *op, int32_t last, int64_t work, tni_ref_walk *out);

void tni_ref_walk_run(const tni_ref_walk *walk, const tn_run *run, tni_ref_piece_fn *piece,
                      void *job);

/* The same on the calling thread and in order; `data` are the operands' first elements. */
void tni_ref_walk_in_order(const tni_ref_walk *walk, char *const *data, tni_ref_piece_fn *piece,
                           void *job);

/* A loop over [0, count) whose turns cost about `work` elements each: task(user, first, end) gets what one
 * thread does. Small loops stay on the calling thread. */
typedef void tni_ref_share_fn(void *user, int64_t first, int64_t end);
void tni_ref_share(const tn_run *run, int64_t count, int64_t work, tni_ref_share_fn *task,
                   void *user);

#endif
