/* Many elements made one, and rows made probabilities.
 *
 * Thread-safety: Safe, on tensors that no other thread writes. */
#ifndef TENON_REDUCE_H
#define TENON_REDUCE_H

#include "explain.h"
#include "module/op.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* out = the sum, mean, ... of in over some of its dimensions. Out is of in's dtype, or wider: f32 for
 * 16-bit floats, i64 for integers. Sums of bool are counts, in i64. Max and min of no element are
 * refused. Out shares no memory with in. */
typedef struct tn_reduce_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    uint64_t axes;     /* a bit for each dimension of in that is reduced; 0: all of them */
    int32_t kind;      /* TN_REDUCE_... */
    int32_t keep;      /* 1: out keeps them, as dimensions of 1; 0: it does not have them */
    tn_stream *stream; /* NULL: the thread's current one of the tensors' device */
    void *workspace;   /* on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_reduce_args;
TN_ENDS_WITH(tn_reduce_args, workspace_bytes);

/* out = exp(in - max) / sum along one dimension, or the logarithm of that. Floats of f64, f32, f16 or
 * bf16; out is of in's dtype, or f32 for 16-bit floats. Out may be in: same memory, same layout. */
typedef struct tn_softmax_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    int32_t axis; /* counted from the last: 0 is the last dimension, 1 the one before it, ... */
    int32_t log;  /* 1: the logarithm */
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_softmax_args;
TN_ENDS_WITH(tn_softmax_args, workspace_bytes);

TN_API tn_status tn_reduce(const tn_context *context, const tn_reduce_args *args, tn_error *err);
TN_API tn_status tn_softmax(const tn_context *context, const tn_softmax_args *args, tn_error *err);

/* What each would take and why, and making it ready: see explain.h and plan.h. */
TN_API tn_status tn_reduce_explain(const tn_context *context, const tn_reduce_args *args,
                                   tn_decision **out, tn_error *err);
TN_API tn_status tn_reduce_prepare(const tn_context *context, const tn_reduce_args *args,
                                   tn_error *err);
TN_API tn_status tn_softmax_explain(const tn_context *context, const tn_softmax_args *args,
                                    tn_decision **out, tn_error *err);
TN_API tn_status tn_softmax_prepare(const tn_context *context, const tn_softmax_args *args,
                                    tn_error *err);

TN_END_DECLS

#endif
