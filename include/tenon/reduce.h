/* Reductions and softmax.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_REDUCE_H
#define TENON_REDUCE_H

#include "explain.h"
#include "module/op/reduce.h"
#include "module/op/softmax.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* out = the sum, mean, ... of in over some of its dimensions. out has in's dtype, or a wider one:
 * f32 for 16-bit floats, i64 for integers. Sums of bool are counts, in i64. Max and min over zero
 * elements fail. out must not share memory with in. Required operands: in; writes out. */
typedef struct tn_reduce_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    uint64_t axes;     /* bit d set: dimension d of in is reduced; 0: all dimensions */
    int32_t kind;      /* TN_REDUCE_... */
    int32_t keep;      /* 1: out keeps the reduced dimensions with size 1; 0: out omits them */
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_reduce_args;
TN_ENDS_WITH(tn_reduce_args, workspace_bytes);

/* out = exp(in - max) / sum along one dimension, or its logarithm. Supports f64, f32, f16 and
 * bf16; out has in's dtype, or f32 for 16-bit floats. out may be in: same memory, same layout.
 * Required operands: in; writes out. */
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

/* _explain reports which kernel each call would use, and why; _prepare makes its plan ahead of
 * time. See explain.h and plan.h. */
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
