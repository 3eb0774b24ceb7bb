/* Matrix products.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_MATMUL_H
#define TENON_MATMUL_H

#include "explain.h"
#include "module/op/matmul.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* Bit of tn_matmul_args.set: use `alpha` as given, even if it is 0. */
#define TN_MATMUL_SET_ALPHA UINT32_C(1)

/* out = activation(alpha * A B + beta * out + bias).
 *
 * A is [..., m, k], B is [..., k, n], out is [..., m, n], with any strides. With transpose_a or
 * transpose_b set, A is [..., k, m] or B is [..., n, k]. Dimensions before the last two broadcast:
 * missing ones and ones of size 1 repeat. The bias broadcasts to out's shape.
 *
 * A and B of 8-bit floats (f8_e4m3fn or f8_e5m2 each) may have f32 scales, by which the elements
 * are multiplied. scale_a broadcasts to the rows of A ([..., m, 1], or a single number), scale_b to
 * the columns of B ([..., 1, n], or a single number).
 *
 * Vectors are matrices with a dimension of 1. If beta is 0, out is not read. If alpha is 0, it
 * depends on the kernel whether NaN and infinity in A and B affect the result.
 *
 * Products of i8 are summed in i32 and wrap on overflow, even if out is f32: -128 * -128 overflows
 * from k = 131072 on. For an i32 out, the sum times alpha is truncated to an integer. bf16 kernels
 * that use AMX or AVX-512 BF16 treat subnormal elements as 0, because the instructions do; use the
 * setting `rules` to forbid them if that matters. Required operands: a, b; writes out. */
typedef struct tn_matmul_args {
    size_t struct_size;
    const tn_tensor *a;
    const tn_tensor *b;
    const tn_tensor *out;
    const tn_tensor *bias; /* NULL: none */
    double alpha;          /* 0: 1, unless TN_MATMUL_SET_ALPHA is in `set` */
    double beta;
    int32_t activation; /* TN_ACT_... */
    int32_t transpose_a;
    int32_t transpose_b;
    tn_dtype acc; /* accumulator; 0: f32 for 8- and 16-bit floats, i32 for i8, else A's */
    uint32_t set;
    uint32_t reserved;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
    const tn_tensor *scale_a; /* NULL: none */
    const tn_tensor *scale_b;
} tn_matmul_args;
TN_ENDS_WITH(tn_matmul_args, scale_b);

TN_API tn_status tn_matmul(const tn_context *context, const tn_matmul_args *args, tn_error *err);

/* _explain reports which kernel tn_matmul would use, and why; _prepare makes its plan ahead of
 * time. See explain.h and plan.h. */
TN_API tn_status tn_matmul_explain(const tn_context *context, const tn_matmul_args *args,
                                   tn_decision **out, tn_error *err);
TN_API tn_status tn_matmul_prepare(const tn_context *context, const tn_matmul_args *args,
                                   tn_error *err);

/* Computes several products at once, such as the experts of a mixture-of-experts layer. Each of
 * groups[0] to groups[count - 1] is as for tn_matmul. All must have the same device, stream and
 * dtypes of A, B and out, and no workspace. No out may overlap another out or any input. Errors
 * begin with "groups[3]: ...". All are checked and planned before the first is computed; if a kernel
 * fails, products before it may have been computed.
 *
 * A kernel is chosen for each product as in tn_matmul, with kernels that compute many products at
 * once among the candidates: problems with the field grouped=1 show them. Products for which the
 * same such kernel is chosen are passed to it together; the others run one by one. On a stream that
 * is being recorded, each product runs separately, with the plan that tn_matmul_prepare makes.
 * Operands are never copied to another device. */
TN_API tn_status tn_matmul_grouped(const tn_context *context, const tn_matmul_args *const *groups,
                                   size_t count, tn_error *err);

/* A packed B, to be shared by many products, as weights are.
 *
 * tn_matmul_pack chooses a kernel for `args` as tn_matmul would, and keeps a copy of B together
 * with that kernel's packed form of it, so that later calls do not have to pack. The original B may
 * then be changed or freed; this does not affect results. tn_matmul_packed computes with the packed
 * B. Its args must be the same as for packing, except for the data of A, bias and out, the values
 * of alpha and beta (if they were neither 1 nor 0), stream and workspace; `b` is NULL. The settings
 * are those at the time of packing. If the kernel may no longer be used, a call fails, and B must
 * be packed again.
 *
 * Thread-safety: Safe; many threads may use one packed B at once. Release it only when no thread
 * uses it and no queued work on a stream needs it. */
typedef struct tn_packed tn_packed;
TN_API tn_status tn_matmul_pack(const tn_context *context, const tn_matmul_args *args,
                                tn_packed **out, tn_error *err);
TN_API tn_status tn_matmul_packed(const tn_packed *packed, const tn_matmul_args *args,
                                  tn_error *err);
TN_API void tn_packed_release(tn_packed *packed);             /* accepts NULL */
TN_API const char *tn_packed_kernel(const tn_packed *packed); /* "" for NULL */
/* Returns the size of the copy of B. *out_of_kernel gets the size of the kernel's packed form: 0 if
 * the kernel reads the copy itself. Both are 0 for NULL. */
TN_API uint64_t tn_packed_bytes(const tn_packed *packed, uint64_t *out_of_kernel);

TN_END_DECLS

#endif
