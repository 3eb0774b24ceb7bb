/* attention-merge: combines two results of attention over different keys: computes (OUT, LSE) from
 * (IN, LSE_IN) and (OTHER, LSE_OTHER), all with the shapes of attention's OUT and LSE. LSE may be
 * absent.
 *
 * Of elementwise.h it has the bits STRIDES and OUT_DTYPE, and of its parameters `elements`, `rows`
 * (batch times heads times queries) and `size` (the last dimension), all of OUT.
 *
 * Thread-safety: constants. */
#ifndef TENON_MODULE_OP_ATTENTION_MERGE_H
#define TENON_MODULE_OP_ATTENTION_MERGE_H

#include "elementwise.h"

enum { TN_OP_ATTENTION_MERGE = 13 };

enum {
    TN_MERGE_IN = 0,
    TN_MERGE_LSE_IN = 1,
    TN_MERGE_OTHER = 2,
    TN_MERGE_LSE_OTHER = 3,
    TN_MERGE_OUT = 4,
    TN_MERGE_LSE = 5,
    TN_MERGE_OPERANDS
};

#endif
