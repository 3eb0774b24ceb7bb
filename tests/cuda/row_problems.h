/* Test problems of a row of the module: the operator's smoke problems that the row supports. So a new
 * operator's kernel is tested without an entry in the suites. */
#ifndef TESTS_CUDA_ROW_PROBLEMS_H
#define TESTS_CUDA_ROW_PROBLEMS_H

#include "../../backends/cuda/kernels/rows.h"
#include "op/op.h"
#include "policy/admission/smoke.h"

#include <stdbool.h>

/* Makes one of the operator's smoke problems; returns false if the dtype has none, or if the
 * row does not support it. */
static inline bool make_row_problem(const tn_kernel_row *row, size_t index, tn_dtype dtype,
                                    tn_op *out)
{
    const tn_query query = {.struct_size = sizeof query, .op = out, .library_version = -1};
    tn_refusal why = {.struct_size = sizeof why};
    return tni_smoke_make(row->op, index, dtype, out) && !(out->uses & ~row->honours) &&
           (!row->admit || row->admit(row, &query, &why) == TN_OK);
}

#endif
