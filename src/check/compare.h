/* Compares the outputs of a kernel with those of the reference. */
#ifndef TNI_CHECK_COMPARE_H
#define TNI_CHECK_COMPARE_H

#include "op/op.h"

/* All pointers are to host memory. */
typedef struct tni_comparand {
    const tn_op *op;
    int32_t output;    /* index of the operand to compare */
    void *const *data; /* first elements of the operands; outputs have their values from before */
    const void *found; /* first element of the output, in the op's layout */
    const void *expected; /* the reference's output, dense */
    uint64_t numerics;    /* TN_NUM_... of the kernel */
} tni_comparand;

/* The element with the largest error. Initialize with {.at = -1}. */
typedef struct tni_difference {
    int64_t checked; /* number of elements compared */
    int64_t wrong;   /* number of elements that exceed their bound */
    double error;    /* divided by its bound; infinite if the bound is 0 and the values differ */
    double bound, found, expected;
    int32_t output; /* index of the operand */
    int64_t at;     /* index of the element, as in a dense tensor; -1: nothing was compared */
} tni_difference;

/* Adds all elements of the output to `difference`. A NaN must match a NaN, an infinity the same
 * infinity, and other numbers must be within their bounds (bounds.h); the outputs of ops that only
 * copy must have the same bits. Sets `out_worse` if `difference->at` is now an element of this
 * output. */
tn_status tni_compare(const tni_comparand *what, tni_difference *difference, bool *out_worse,
                      tn_error *err);

/* Writes "output 7 is 3, the reference has 2, and they may be 1e-06 apart; 1 of 77 are wrong". If
 * the op has several outputs, the text has the output's name. */
void tni_difference_write(const tni_difference *difference, const tn_op *op, char *out,
                          size_t size);

#endif
