/* Backward pass of block-sparse attention (attention_sparse.h). The time is proportional to the
 * number of listed blocks.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_ATTENTION_SPARSE_BACKWARD_H
#define TENON_ATTENTION_SPARSE_BACKWARD_H

#include "attention_sparse.h"
#include "module/op/attention_sparse_backward.h"

TN_BEGIN_DECLS

/* Computes dq, dk and dv from dout. q, k, v, out, lse, the tables and the other parameters must be
 * those of the call of tn_attention_sparse that computed out and lse; dout has q's dtype. The lists
 * are those of the forward pass: the blocks of keys of each block of queries. Wrong tables fail with
 * TN_INVALID_ARGUMENT when the kernel runs, before anything is written.
 * module/op/attention_sparse_backward.h specifies the computation.
 * Required operands: q, k, v, out, lse, dout; writes dq, dk, dv. */
typedef struct tn_attention_sparse_backward_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *lse;
    const tn_tensor *block_mask;
    const tn_tensor *starts;
    const tn_tensor *blocks;
    const tn_tensor *block_sizes;
    const tn_tensor *dout;
    const tn_tensor *dq;
    const tn_tensor *dk;
    const tn_tensor *dv;
    double scale;
    int64_t block_queries;
    int64_t block_keys;
    int64_t window_left;
    int64_t window_right;
    int32_t mask;
    int32_t layout; /* TN_LAYOUT_... of q, k, v, out, dout, dq, dk, dv */
    uint32_t set;
    int32_t reserved;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_attention_sparse_backward_args;
TN_ENDS_WITH(tn_attention_sparse_backward_args, workspace_bytes);

TN_API tn_status tn_attention_sparse_backward(const tn_context *context,
                                              const tn_attention_sparse_backward_args *args,
                                              tn_error *err);

/* _explain reports which kernel a call would use, and why; _prepare makes its plan ahead of time.
 * See explain.h and plan.h. */
TN_API tn_status tn_attention_sparse_backward_explain(const tn_context *context,
                                                      const tn_attention_sparse_backward_args *args,
                                                      tn_decision **out, tn_error *err);
TN_API tn_status tn_attention_sparse_backward_prepare(const tn_context *context,
                                                      const tn_attention_sparse_backward_args *args,
                                                      tn_error *err);

TN_END_DECLS

#endif
