/* Matrix products.
 *
 * Thread-safety: Safe, on tensors that no other thread writes. */
#ifndef TENON_MATMUL_H
#define TENON_MATMUL_H

#include "explain.h"
#include "module/op.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* tn_matmul_args.set: a number is meant, though it is 0. */
#define TN_MATMUL_SET_ALPHA UINT32_C(1)

/* out = activation(alpha * A B + beta * out + bias).
 *
 * A is [..., m, k], B is [..., k, n], out is [..., m, n], of any strides; with transpose_a or _b set, A is
 * [..., k, m], B is [..., n, k]. Dimensions before the last two broadcast: those that are missing or 1
 * serve all. A bias broadcasts to out's shape. Vectors are matrices with a dimension of 1. With beta 0, what is in
 * out is not read; with alpha 0, whether NaNs and infinities of A and B count is left to the kernel. */
typedef struct tn_matmul_args {
    size_t struct_size;
    const tn_tensor *a;
    const tn_tensor *b;
    const tn_tensor *out;
    const tn_tensor *bias; /* NULL: none */
    double alpha;          /* 0: 1, unless `set` says that it is meant */
    double beta;
    int32_t activation; /* TN_ACT_... */
    int32_t transpose_a;
    int32_t transpose_b;
    tn_dtype acc; /* what products are summed in; 0: f32 for 16-bit floats, i32 for i8, else A's */
    uint32_t set;
    uint32_t reserved;
    tn_stream *stream; /* NULL: the thread's current one of the tensors' device */
    void *workspace;   /* on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_matmul_args;
TN_ENDS_WITH(tn_matmul_args, workspace_bytes);

TN_API tn_status tn_matmul(const tn_context *context, const tn_matmul_args *args, tn_error *err);

/* What tn_matmul would take and why, and making it ready: see explain.h and plan.h. */
TN_API tn_status tn_matmul_explain(const tn_context *context, const tn_matmul_args *args,
                                   tn_decision **out, tn_error *err);
TN_API tn_status tn_matmul_prepare(const tn_context *context, const tn_matmul_args *args,
                                   tn_error *err);

TN_END_DECLS

#endif
