/* attention-sparse-backward with the kernels of attention-backward.
 *
 * The keys and the queries of a unit are divided into bands, whose number depends on the sizes only.
 * In each round, a band of queries is combined with at most one band of keys, which depends only on
 * the round. So the bits of a gradient do not depend on the number of threads, nothing is computed
 * twice, and no transposed lists are needed: a block of queries finds its listed blocks in a band by
 * binary search. The time is proportional to the number of listed blocks, the memory to that of
 * queries and keys. */
#ifndef TENON_BACKENDS_CPU_ATTENTION_SPARSE_BACKWARD_PASS_H
#define TENON_BACKENDS_CPU_ATTENTION_SPARSE_BACKWARD_PASS_H

#include "../attention/attention_low.h"
#include "tenon/module/attention_sparse.h"

/* A kernel row, and the sets that it computes with; 16-bit floats are widened to f32. */
typedef struct tni_sparse_back_row {
    tn_kernel_row row; /* must be first: the functions get a pointer to it */
    const tni_at_back_set *f32, *f64;
    const tni_at_half *bf16, *f16;
} tni_sparse_back_row;

/* Bytes of workspace for this number of threads; UINT64_MAX: overflow. */
uint64_t tni_sparse_back_workspace(const tni_at_back_set *set, const tn_op *op, int32_t threads);

/* Fails with TN_INVALID_ARGUMENT, before anything is written, if tables are inconsistent. */
tn_status tni_sparse_backward(const tni_at_back_set *set, const tn_run *run, tn_error *err);

#endif
