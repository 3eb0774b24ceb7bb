/* What a kernel gave, held against what the reference gave. */
#ifndef TNI_DISPATCH_COMPARE_H
#define TNI_DISPATCH_COMPARE_H

#include "op/op.h"

/* All of it lies in host memory. */
typedef struct tni_comparand {
    const tn_op *op;
    int32_t output;       /* which of its operands is looked at */
    void *const *data;    /* the operands' first elements; the outputs' as they were before */
    const void *found;    /* the output's first element, lying as the op says */
    const void *expected; /* the reference's, dense */
    uint64_t numerics;    /* TN_NUM_... of the kernel */
} tni_comparand;

/* The output that is farthest off. Begins as {.at = -1}. */
typedef struct tni_difference {
    int64_t checked; /* outputs looked at */
    int64_t wrong;   /* of them, beyond their bounds */
    double error;    /* as a part of its bound; infinite for what has none and differs */
    double bound, found, expected;
    int32_t output; /* the operand */
    int64_t at;     /* counted as in a dense tensor; -1: none was looked at */
} tni_difference;

/* Adds all numbers of the output to `difference`. A NaN meets a NaN, an infinity the same one, and every
 * other number is within its bound (bounds.h); what is only copied has the same bits. True when `at` is
 * one of these now. */
tn_status tni_compare(const tni_comparand *what, tni_difference *difference, bool *out_worse,
                      tn_error *err);

/* "output 7 is 3, the reference has 2, and they may be 1e-06 apart; 1 of 77 are wrong"; by its name where the
 * op has several. */
void tni_difference_tell(const tni_difference *difference, const tn_op *op, char *out, size_t size);

#endif
