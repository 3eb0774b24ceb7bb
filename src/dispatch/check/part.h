/* Parts of a problem that make some of its outputs: what is too large to be checked whole. */
#ifndef TNI_DISPATCH_PART_H
#define TNI_DISPATCH_PART_H

#include "ops/op.h"

/* So many outputs in each dimension of out, from `begin` on. */
typedef struct tni_part {
    int64_t begin[TN_OP_RANK_MAX];
    int64_t count[TN_OP_RANK_MAX];
} tni_part;

/* The op that makes the part from the same operands, settled, and where they begin in it. It is never in
 * place. `data` may have NULL for what has no elements. */
tn_status tni_part_take(const tn_op *op, void *const *data, const tni_part *part, tn_op *out_op,
                        void *out_data[TN_OP_OPERANDS_MAX], tn_error *err);

/* A number of an output of the part, counted as in a dense tensor, as one of the whole. */
int64_t tni_part_place(const tn_op *op, const tni_part *part, int32_t output, int64_t at);

/* Visits all outputs as one part; or with `sampled` the corners, of a matmul's first and last matrix the
 * edges as far as 10^8 operations go, and 4096 outputs at random, by the seed: whole rows of ops on rows,
 * as many as have these outputs, and at least 16. Ends with the first status that is not TN_OK. */
typedef tn_status tni_part_visit(void *user, const tni_part *part, tn_error *err);
tn_status tni_parts_visit(const tn_op *op, bool sampled, uint64_t seed, tni_part_visit *visit,
                          void *user, tn_error *err);

#endif
