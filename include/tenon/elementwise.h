/* Elements moved, converted, filled and computed one by one.
 *
 * Tensors may have any strides. Out shares no memory with what is read, but where it may be in itself:
 * then both have the same memory and the same layout.
 *
 * Thread-safety: Safe, on tensors that no other thread writes. */
#ifndef TENON_ELEMENTWISE_H
#define TENON_ELEMENTWISE_H

#include "explain.h"
#include "module/op.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* out = in with its dimensions in another order: out's dimension i is in's dimension order[i]. Both are
 * of one dtype. */
typedef struct tn_permute_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    const int32_t *order; /* NULL: as they are, a copy */
    int32_t order_count;
    int32_t reserved;
    tn_stream *stream; /* NULL: the thread's current one of the tensors' device */
    void *workspace;   /* on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_permute_args;
TN_ENDS_WITH(tn_permute_args, workspace_bytes);

/* out = in as out's dtype: floats to nearest even; to integers cut towards zero, what is too great becomes
 * the greatest or least, a NaN 0; to bool: not zero, in either part; else of complex numbers the real part.
 * Out may be in. */
typedef struct tn_cast_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *out;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_cast_args;
TN_ENDS_WITH(tn_cast_args, workspace_bytes);

/* out = value, as a cast from f64 gives it. */
typedef struct tn_fill_args {
    size_t struct_size;
    const tn_tensor *out;
    double value;
    double imaginary; /* of complex numbers only */
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_fill_args;
TN_ENDS_WITH(tn_fill_args, workspace_bytes);

/* out = kind(in), of in's shape and dtype; out of 16-bit floats may be f32. Out may be in. All kinds take floats;
 * neg, abs and relu also integers, neg also complex numbers. */
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

/* out = in kind other. Both are of one dtype, which is out's; out of 16-bit floats may be f32. They
 * broadcast to out's shape: dimensions that are missing or 1 serve all. Out may be in, not other. Integers and floats;
 * complex numbers too, but for max and min. */
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

/* What each would take and why, and making it ready: see explain.h and plan.h. */
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
