/* Parts of a problem that compute some of its outputs, for problems that are too large to check
 * completely. */
#ifndef TNI_CHECK_PART_H
#define TNI_CHECK_PART_H

#include "op/op_check.h"

/* Makes the validated op that computes the part from the same operands, and the addresses of its
 * first elements. The op is never in place. Elements of `data` may be NULL for empty operands. */
tn_status tni_part_extract(const tn_op *op, void *const *data, const tni_part *part, tn_op *out_op,
                           void *out_data[TN_OP_OPERANDS_MAX], tn_error *err);

/* Converts the index of an element of the part, counted as in a dense tensor, to that of the whole. */
int64_t tni_part_place(const tn_op *op, const tni_part *part, int32_t output, int64_t at);

/* Visits all outputs as one part. If `sampled`, visits instead the corners, the edges of the first
 * and last matrix for ops with line_cost (up to 10^8 operations), and 4096 outputs at random from
 * the seed. For ops on rows, these are complete rows, at least 16. Stops at the first status that is
 * not TN_OK. */
typedef tn_status tni_part_visit(void *user, const tni_part *part, tn_error *err);
tn_status tni_parts_visit(const tn_op *op, bool sampled, uint64_t seed, tni_part_visit *visit,
                          void *user, tn_error *err);

#endif
