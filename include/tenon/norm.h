/* Normalization (layer norm, RMS norm) and rotary position embedding.
 *
 * Both support f64, f32, f16 and bf16. out has in's shape and dtype, or f32 for 16-bit floats, and
 * may be in: same memory, same layout. Weight, bias, cos and sin have in's dtype or f32.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_NORM_H
#define TENON_NORM_H

#include "explain.h"
#include "module/op/norm.h"
#include "module/op/rotary.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* Bit of tn_norm_args.set: use `epsilon` as given, even if it is 0. */
#define TN_NORM_SET_EPSILON UINT32_C(1)

/* Normalizes along the last dimension. layer: out = (in - mean) / sqrt(variance + epsilon) *
 * weight + bias; rms: out = in / sqrt(mean of squares + epsilon) * weight + bias.
 * Required operands: in; writes out. */
typedef struct tn_norm_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    const tn_tensor *weight; /* as long as the last dimension of in; NULL: 1 */
    const tn_tensor *bias;   /* the same; NULL: 0 */
    double epsilon;          /* 0: 1e-5, unless TN_NORM_SET_EPSILON is in `set` */
    int32_t kind;            /* TN_NORM_... */
    uint32_t set;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_norm_args;
TN_ENDS_WITH(tn_norm_args, workspace_bytes);

/* Rotary position embedding. The first `size` elements of the last dimension are rotated in pairs:
 * (x, y) becomes (x cos - y sin, x sin + y cos). The other elements are copied. halves: x is
 * element i, y is element i + size / 2; pairs: x is element 2 i, y is element 2 i + 1. The last
 * dimension of cos and sin is size / 2; their other dimensions broadcast to in's: [length, size /
 * 2] for in of [batch, heads, length, head size]. Required operands: in, cos, sin; writes out. */
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

/* _explain reports which kernel each call would use, and why; _prepare makes its plan ahead of
 * time. See explain.h and plan.h. */
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
