/* Rows normalised, and rows turned by their positions.
 *
 * Both take f64, f32, f16 or bf16; out is of in's shape and dtype, or f32 for 16-bit floats, and may be
 * in: same memory, same layout. Weight, bias, cos and sin are of in's dtype or f32.
 *
 * Thread-safety: Safe, on tensors that no other thread writes. */
#ifndef TENON_NORM_H
#define TENON_NORM_H

#include "explain.h"
#include "module/op.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* tn_norm_args.set: a number is meant, though it is 0. */
#define TN_NORM_SET_EPSILON UINT32_C(1)

/* Along the last dimension. layer: out = (in - mean) / sqrt(variance + epsilon) * weight + bias;
 * rms: out = in / sqrt(mean of squares + epsilon) * weight + bias. */
typedef struct tn_norm_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    const tn_tensor *weight; /* as many as a row of in has; NULL: 1 */
    const tn_tensor *bias;   /* the same; NULL: 0 */
    double epsilon;          /* 0: 1e-5, unless `set` says that it is meant */
    int32_t kind;            /* TN_NORM_... */
    uint32_t set;
    tn_stream *stream; /* NULL: the thread's current one of the tensors' device */
    void *workspace;   /* on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_norm_args;
TN_ENDS_WITH(tn_norm_args, workspace_bytes);

/* The first `size` of the last dimension are turned in pairs (x, y) to (x cos - y sin, x sin + y cos),
 * the others are copied. halves: x is element i, y element i + size / 2; pairs: x is element 2 i, y
 * element 2 i + 1. Cos and sin have size / 2 in the last dimension and broadcast to in's others:
 * [length, size / 2] for in of [batch, heads, length, head size]. */
typedef struct tn_rotary_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    const tn_tensor *cos;
    const tn_tensor *sin;
    int64_t size; /* even; 0: the whole last dimension */
    int32_t kind; /* TN_ROTARY_... */
    int32_t reserved;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_rotary_args;
TN_ENDS_WITH(tn_rotary_args, workspace_bytes);

TN_API tn_status tn_norm(const tn_context *context, const tn_norm_args *args, tn_error *err);
TN_API tn_status tn_rotary(const tn_context *context, const tn_rotary_args *args, tn_error *err);

/* What each would take and why, and making it ready: see explain.h and plan.h. */
TN_API tn_status tn_norm_explain(const tn_context *context, const tn_norm_args *args,
                                 tn_decision **out, tn_error *err);
TN_API tn_status tn_norm_prepare(const tn_context *context, const tn_norm_args *args,
                                 tn_error *err);
TN_API tn_status tn_rotary_explain(const tn_context *context, const tn_rotary_args *args,
                                   tn_decision **out, tn_error *err);
TN_API tn_status tn_rotary_prepare(const tn_context *context, const tn_rotary_args *args,
                                   tn_error *err);

TN_END_DECLS

#endif
