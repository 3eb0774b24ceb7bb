/* Elementwise operations: permute, cast, fill, unary and binary functions.
 *
 * Tensors may have any strides. The output must not share memory with an input, except where
 * in-place operation is allowed ("out may be in"): then both must have the same memory and the same
 * layout.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_ELEMENTWISE_H
#define TENON_ELEMENTWISE_H

#include "explain.h"
#include "module/op/binary.h"
#include "module/op/cast.h"
#include "module/op/fill.h"
#include "module/op/permute.h"
#include "module/op/unary.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* out = in with permuted dimensions: dimension i of out is dimension order[i] of in. Both have the
 * same dtype. Required operands: in; writes out. */
typedef struct tn_permute_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    const int32_t *order; /* NULL: keep the order, plain copy */
    int32_t order_count;
    int32_t reserved;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_permute_args;
TN_ENDS_WITH(tn_permute_args, workspace_bytes);

/* out = in converted to out's dtype. To floats: round to nearest even. To integers: truncate
 * towards zero, out-of-range values saturate, NaN becomes 0. To bool: nonzero is true (for
 * complex, if either part is nonzero). Otherwise a complex number is converted by its real part.
 * Out may be in. Required operands: in; writes out. */
typedef struct tn_cast_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_cast_args;
TN_ENDS_WITH(tn_cast_args, workspace_bytes);

/* out = value, converted as by a cast from f64. Required operands: none; writes out. */
typedef struct tn_fill_args {
    size_t struct_size;
    const tn_tensor *out;
    double value;
    double imaginary; /* only for complex dtypes */
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_fill_args;
TN_ENDS_WITH(tn_fill_args, workspace_bytes);

/* out = kind(in), with in's shape and dtype; out may be f32 if in is a 16-bit float. Out may be
 * in. All kinds support floats; neg, abs and relu also integers; neg also complex numbers.
 * Required operands: in; writes out. */
typedef struct tn_unary_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    int32_t kind; /* TN_UNARY_... */
    int32_t reserved;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_unary_args;
TN_ENDS_WITH(tn_unary_args, workspace_bytes);

/* out = in kind other. in, other and out have the same dtype; out may be f32 for 16-bit floats. in
 * and other broadcast to out's shape (missing dimensions and dimensions of 1 repeat). Out may be
 * in, but not other. Supports integers and floats, and complex numbers except for max and min.
 * Required operands: in, other; writes out. */
typedef struct tn_binary_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *other;
    const tn_tensor *out;
    int32_t kind; /* TN_BINARY_... */
    int32_t reserved;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_binary_args;
TN_ENDS_WITH(tn_binary_args, workspace_bytes);

TN_API tn_status tn_permute(const tn_context *context, const tn_permute_args *args, tn_error *err);
TN_API tn_status tn_cast(const tn_context *context, const tn_cast_args *args, tn_error *err);
TN_API tn_status tn_fill(const tn_context *context, const tn_fill_args *args, tn_error *err);
TN_API tn_status tn_unary(const tn_context *context, const tn_unary_args *args, tn_error *err);
TN_API tn_status tn_binary(const tn_context *context, const tn_binary_args *args, tn_error *err);

/* _explain reports which kernel each call would use, and why; _prepare makes its plan ahead of
 * time. See explain.h and plan.h. */
TN_API tn_status tn_permute_explain(const tn_context *context, const tn_permute_args *args,
                                    tn_decision **out, tn_error *err);
TN_API tn_status tn_permute_prepare(const tn_context *context, const tn_permute_args *args,
                                    tn_error *err);
TN_API tn_status tn_cast_explain(const tn_context *context, const tn_cast_args *args,
                                 tn_decision **out, tn_error *err);
TN_API tn_status tn_cast_prepare(const tn_context *context, const tn_cast_args *args,
                                 tn_error *err);
TN_API tn_status tn_fill_explain(const tn_context *context, const tn_fill_args *args,
                                 tn_decision **out, tn_error *err);
TN_API tn_status tn_fill_prepare(const tn_context *context, const tn_fill_args *args,
                                 tn_error *err);
TN_API tn_status tn_unary_explain(const tn_context *context, const tn_unary_args *args,
                                  tn_decision **out, tn_error *err);
TN_API tn_status tn_unary_prepare(const tn_context *context, const tn_unary_args *args,
                                  tn_error *err);
TN_API tn_status tn_binary_explain(const tn_context *context, const tn_binary_args *args,
                                   tn_decision **out, tn_error *err);
TN_API tn_status tn_binary_prepare(const tn_context *context, const tn_binary_args *args,
                                   tn_error *err);

TN_END_DECLS

#endif
