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
 * serve all. A bias broadcasts to out's shape.
 *
 * A and B of 8-bit floats, f8_e4m3fn or f8_e5m2 each, may have scales of f32, which the elements are meant to be
 * multiplied by: scale_a broadcasts to A's rows ([..., m, 1], or one number for all), scale_b to B's columns
 * ([..., 1, n], or one for all).
 *
 * Vectors are matrices with a dimension of 1. With beta 0, what is in out is not read; with alpha 0, whether NaNs and
 * infinities of A and B count is left to the kernel.
 *
 * Sums of i8 are of i32 and wrap, also where out is f32: -128 * -128 does from k = 131072 on. Times alpha they are cut
 * to whole numbers for an out of i32. Kernels of bf16 by AMX and AVX-512 BF16 take subnormal elements for 0, as their
 * instructions do; the setting `rules` forbids them where that matters. */
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
    tn_dtype acc; /* of sums; 0: f32 for floats of 8 and 16 bits, i32 for i8, else A's */
    uint32_t set;
    uint32_t reserved;
    tn_stream *stream; /* NULL: the thread's current one of the tensors' device */
    void *workspace;   /* on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
    const tn_tensor *scale_a; /* NULL: none */
    const tn_tensor *scale_b;
} tn_matmul_args;
TN_ENDS_WITH(tn_matmul_args, scale_b);

TN_API tn_status tn_matmul(const tn_context *context, const tn_matmul_args *args, tn_error *err);

/* What tn_matmul would take and why, and making it ready: see explain.h and plan.h. */
TN_API tn_status tn_matmul_explain(const tn_context *context, const tn_matmul_args *args,
                                   tn_decision **out, tn_error *err);
TN_API tn_status tn_matmul_prepare(const tn_context *context, const tn_matmul_args *args,
                                   tn_error *err);

/* Several products at once, as those of a mixture's experts are: each of groups[0] to groups[count - 1] is what
 * tn_matmul takes, all of one device, one stream and the same dtypes of A, B and out, without workspace; no out
 * shares a byte with another's or with any input. What is wrong is told as "groups[3]: ...", and then none is computed.
 *
 * A kernel is chosen for each as tn_matmul chooses it, with those among the candidates that take many at once: they
 * show for problems with the field grouped=1. What one of those is chosen for goes to it together, the rest one by
 * one. On a stream that is recorded, each is a product of its own, whose plan tn_matmul_prepare puts at hand. Operands
 * are never moved to another device for it. */
TN_API tn_status tn_matmul_grouped(const tn_context *context, const tn_matmul_args *const *groups,
                                   size_t count, tn_error *err);

/* A B that many products have in common, as weights are.
 *
 * tn_matmul_pack chooses a kernel for `args` as tn_matmul would, and keeps a copy of B with what that kernel makes
 * of it, so that no call has to: the given one may be changed or freed, which shows in no result. tn_matmul_packed
 * then computes with it: args as they were, but for the data of A, bias and out, the values of alpha and beta where
 * they were neither 1 nor 0, stream and workspace; `b` is NULL. Settings are those that B was packed under. When
 * its kernel may no longer be taken, a call is refused, and B is to be packed again.
 *
 * Thread-safety: Safe; one may serve many threads at once. It is released when none uses it any more, on the
 * stream neither. */
typedef struct tn_packed tn_packed;
TN_API tn_status tn_matmul_pack(const tn_context *context, const tn_matmul_args *args,
                                tn_packed **out, tn_error *err);
TN_API tn_status tn_matmul_packed(const tn_packed *packed, const tn_matmul_args *args,
                                  tn_error *err);
TN_API void tn_packed_release(tn_packed *packed);             /* accepts NULL */
TN_API const char *tn_packed_kernel(const tn_packed *packed); /* "" for NULL */
/* Of the copy, and of what the kernel made of it: 0 where it reads the copy. 0 for NULL. */
TN_API uint64_t tn_packed_bytes(const tn_packed *packed, uint64_t *out_of_kernel);

TN_END_DECLS

#endif
