/* Attention: softmax(scale Q K^T) V, without storing the whole score matrix.
 *
 * Every kernel computes exactly what is specified here. A kernel that does not support some part of
 * a call is not chosen; if no kernel supports it, the call fails. No part is ever ignored silently.
 *
 * NaN and infinity: a key that is excluded for a query (by its position, a length, false in a
 * boolean mask, or -infinity in a float mask) contributes nothing to that query, whatever K and V
 * contain there. A key that is not excluded contributes its weight times its value by the rules of
 * IEEE 754, even if the weight underflows to 0. The same holds for gradients. module/op/attention.h has the
 * full rule; kernels of vendor libraries are not required to follow it.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_ATTENTION_H
#define TENON_ATTENTION_H

#include "explain.h"
#include "module/op/attention.h"
#include "module/op/attention_backward.h"
#include "module/op/attention_merge.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* Which keys a query can see, by position: i is the index of the query among `queries`, j the index
 * of the key among `keys`. A mask tensor restricts this further. */
enum {
    TN_MASK_NONE = 0,  /* all                                                              */
    TN_MASK_CAUSAL,    /* j <= i: top-left aligned, as PyTorch's is_causal                 */
    TN_MASK_CAUSAL_BR, /* j <= i + keys - queries: bottom-right aligned, as FlashAttention */
    TN_MASK_WINDOW,    /* bottom-right aligned, window_left before, window_right after; -1: no
                          bound */
    TN_MASK_COUNT
};

/* Order of the dimensions: [batch, heads, length, size] or [batch, length, heads, size]. Packed
 * tensors have no batch dimension. Paged K and V are [pages, heads, page, size] or [pages, page,
 * heads, size]. */
enum { TN_LAYOUT_BHLD = 0, TN_LAYOUT_BLHD, TN_LAYOUT_COUNT };

/* Bit of tn_attention_args.set: use `scale` as given, even if it is 0. */
#define TN_ATTENTION_SET_SCALE UINT32_C(1)

/* Q, K and V have the same dtype: f64, f32, f16 or bf16. out has that dtype too, or f32 if it is a
 * 16-bit one. lse is f32, or f64 for f64 inputs. The number of heads of Q is a multiple of that of
 * K and V. A mask tensor broadcasts to [batch, heads, queries, keys]. In a boolean mask, true
 * means that the key is seen. A float mask (Q's dtype or f32) is added to the scores. A padding
 * mask, which says which keys exist, is [batch, 1, 1, keys]. Packed: sequence b has the rows from
 * starts_q[b] up to, not including, starts_q[b + 1]; rows of out and lse before the first sequence
 * and after the last one are not written. module/op/attention.h specifies the computation.
 * Required operands: q, k, v; writes out; may write lse. */
typedef struct tn_attention_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *lse; /* [batch, heads, queries], packed [heads, queries]; NULL: not computed */
    const tn_tensor *mask_tensor; /* NULL: none */
    const tn_tensor *sinks;       /* [heads], of q's dtype or f32; NULL: none */
    const tn_tensor *starts_q;    /* i32 [batch + 1], with starts_k or pages; NULL: not packed */
    const tn_tensor *starts_k;
    const tn_tensor *lengths; /* i32 [batch]: number of keys of each sequence; NULL: all */
    const tn_tensor *pages;   /* i32 [batch, pages of a sequence]; needs lengths; NULL: not paged */
    double scale;             /* 0: 1 / sqrt(size), unless TN_ATTENTION_SET_SCALE is in `set` */
    double softcap;           /* 0: none */
    double dropout;           /* probability; 0 <= dropout < 1 */
    uint64_t seed;            /* of dropout; `offset` is the first block of random numbers */
    uint64_t offset;
    int64_t window_left; /* for TN_MASK_WINDOW; both 0: a query sees the key at its position */
    int64_t window_right;
    int64_t max_queries; /* packed: length of the longest sequence; 0: the number of rows of q */
    int64_t max_keys;    /* the same for keys; only without pages; 0: the number of rows of k */
    int32_t mask;        /* TN_MASK_... */
    int32_t layout;      /* TN_LAYOUT_... of q, k, v, out */
    uint32_t set;
    int32_t backend;   /* required TN_BACKEND_...; 0: as settings request, else the fastest */
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
    /* i64 [2], contiguous, on the tensors' device: seed and offset of dropout, in place of those
     * above; read when the kernel runs, also by each run of a graph. NULL: those above. */
    const tn_tensor *seed_tensor;
} tn_attention_args;
TN_ENDS_WITH(tn_attention_args, seed_tensor);

/* Backward pass of tn_attention: computes dq, dk and dv from dout. q, k, v, out, lse, mask and the
 * other parameters must be those of the forward call that computed out and lse. Packed sequences,
 * pages and sinks are not supported. Required operands: q, k, v, out, lse, dout; writes dq, dk, dv. */
typedef struct tn_attention_backward_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *lse;
    const tn_tensor *mask_tensor;
    const tn_tensor *dout;
    const tn_tensor *dq;
    const tn_tensor *dk;
    const tn_tensor *dv;
    double scale;
    double softcap;
    double dropout;
    uint64_t seed;
    uint64_t offset;
    int64_t window_left;
    int64_t window_right;
    int32_t mask;
    int32_t layout;
    uint32_t set;
    int32_t backend;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
    const tn_tensor *seed_tensor;
} tn_attention_backward_args;
TN_ENDS_WITH(tn_attention_backward_args, seed_tensor);

/* Merges two attention results over different keys into the result over all keys: computes out and
 * lse from (in, lse_in) and (other, lse_other). in, other and out are [batch, heads, queries,
 * size] in the order of `layout`; each lse is [batch, heads, queries]. The inputs must not share
 * memory with the outputs. Required operands: in, lse_in, other, lse_other; writes out; may write lse. */
typedef struct tn_attention_merge_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *lse_in;
    const tn_tensor *other;
    const tn_tensor *lse_other;
    const tn_tensor *out;
    const tn_tensor *lse; /* NULL: not computed */
    int32_t layout;
    int32_t reserved;
    tn_stream *stream;
    void *workspace;
    uint64_t workspace_bytes;
} tn_attention_merge_args;
TN_ENDS_WITH(tn_attention_merge_args, workspace_bytes);

TN_API tn_status tn_attention(const tn_context *context, const tn_attention_args *args,
                              tn_error *err);
TN_API tn_status tn_attention_backward(const tn_context *context,
                                       const tn_attention_backward_args *args, tn_error *err);
TN_API tn_status tn_attention_merge(const tn_context *context, const tn_attention_merge_args *args,
                                    tn_error *err);

/* _explain reports which kernel each call would use, and why; _prepare makes its plan ahead of
 * time. See explain.h and plan.h. */
TN_API tn_status tn_attention_explain(const tn_context *context, const tn_attention_args *args,
                                      tn_decision **out, tn_error *err);
TN_API tn_status tn_attention_prepare(const tn_context *context, const tn_attention_args *args,
                                      tn_error *err);
TN_API tn_status tn_attention_backward_explain(const tn_context *context,
                                               const tn_attention_backward_args *args,
                                               tn_decision **out, tn_error *err);
TN_API tn_status tn_attention_backward_prepare(const tn_context *context,
                                               const tn_attention_backward_args *args,
                                               tn_error *err);
TN_API tn_status tn_attention_merge_explain(const tn_context *context,
                                            const tn_attention_merge_args *args, tn_decision **out,
                                            tn_error *err);
TN_API tn_status tn_attention_merge_prepare(const tn_context *context,
                                            const tn_attention_merge_args *args, tn_error *err);

TN_END_DECLS

#endif
