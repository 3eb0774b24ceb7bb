/* attention-sparse with the kernels of attention: keys are packed once for all heads that share
 * them, then each tile of queries visits the panels that its listed blocks are in.
 *
 * A tile is a block of queries, or a part of a large one. The result of a row is bitwise the same
 * for any number of threads and any other batch contents: tiles and steps depend only on the sizes
 * and on the lists of the row's block. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SPARSE_PASS_H
#define TENON_BACKENDS_CPU_ATTENTION_SPARSE_PASS_H

#include "../attention/attention_low.h"
#include "tenon/module/attention_sparse.h"

/* A kernel row, and the sets that it computes with; 16-bit floats are widened to f32. */
typedef struct tni_sparse_row {
    tn_kernel_row row; /* must be first: the functions get a pointer to it */
    const tni_at_set *f32, *f64;
    const tni_at_half *bf16, *f16;
} tni_sparse_row;

/* Bytes of workspace for this number of threads; UINT64_MAX: overflow. */
uint64_t tni_sparse_workspace(const tni_at_set *set, const tn_op *op, int32_t threads);

/* Fails with TN_INVALID_ARGUMENT, before anything is written, if tables are inconsistent. */
tn_status tni_sparse_forward(const tni_at_set *set, const tn_run *run, tn_error *err);

#endif
