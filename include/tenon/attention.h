/* Attention: softmax(scale Q K^T) V without ever holding the scores.
 *
 * What is said here is what every kernel computes: a kernel that cannot honour a part of a call is not
 * taken, and when none can, the call is refused. Nothing is ever left out silently.
 *
 * NaN and infinity: a key that is excluded for a query (by its place, a length, false in a mask of bool, -infinity in a
 * mask of floats) contributes nothing to it, whatever K and V hold there. A key that is not excluded contributes its
 * weight times its value by the rules of IEEE 754, also where the weight underflows to 0. The same holds for gradients:
 * see module/op.h for the whole rule, which kernels of vendor libraries are not held to.
 *
 * Thread-safety: Safe, on tensors that no other thread writes. */
#ifndef TENON_ATTENTION_H
#define TENON_ATTENTION_H

#include "explain.h"
#include "module/op.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* Which keys a query sees by its place, i of `queries`, and theirs, j of `keys`. A mask of the program's
 * comes on top. */
enum {
    TN_MASK_NONE = 0,  /* all                                                                  */
    TN_MASK_CAUSAL,    /* j <= i: aligned at the top left, as PyTorch's is_causal               */
    TN_MASK_CAUSAL_BR, /* j <= i + keys - queries: at the bottom right, as FlashAttention's     */
    TN_MASK_WINDOW, /* at the bottom right, window_left before and window_right behind; -1: all */
    TN_MASK_COUNT
};

/* Which way tensors lie: [batch, heads, length, size] or [batch, length, heads, size]; packed without the
 * batch; pages as [pages, heads, page, size] or [pages, page, heads, size]. */
enum { TN_LAYOUT_BHLD = 0, TN_LAYOUT_BLHD, TN_LAYOUT_COUNT };

/* tn_attention_args.set: a number is meant, though it is 0. */
#define TN_ATTENTION_SET_SCALE UINT32_C(1)

/* Q, K, V are of one dtype, f64, f32, f16 or bf16; out is of theirs, or f32 for 16-bit ones. lse is f32,
 * of f64 it is f64. Heads of Q are a multiple of those of K and V. A mask tensor broadcasts to [batch, heads,
 * queries, keys]: of bool, true is seen; of floats, q's dtype or f32, it is added to the scores. One of
 * padding, of which keys there are, is [batch, 1, 1, keys]. Packed, sequence b has the rows from starts_q[b] up to
 * starts_q[b + 1]; rows of out and lse before the first and behind the last, which are in none, stay as they are. See
 * module/op.h for what is computed. */
typedef struct tn_attention_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *lse; /* [batch, heads, queries], packed [heads, queries]; NULL: not wanted */
    const tn_tensor *mask_tensor; /* NULL: none */
    const tn_tensor *sinks;       /* [heads], of q's dtype or f32; NULL: none */
    const tn_tensor *starts_q; /* [batch + 1] of i32, with starts_k or pages: packed; NULL: not */
    const tn_tensor *starts_k;
    const tn_tensor *lengths; /* [batch] of i32: keys of each sequence; NULL: all */
    const tn_tensor *pages;   /* [batch, pages of a sequence] of i32, with lengths; NULL: none */
    double scale;             /* 0: 1 / sqrt(size), unless `set` says that it is meant */
    double softcap;           /* 0: none */
    double dropout;           /* from 0 up to, not including, 1 */
    uint64_t seed;            /* of dropout, with the place in its numbers to begin at */
    uint64_t offset;
    int64_t window_left; /* of TN_MASK_WINDOW; both 0: each query sees the key at its place */
    int64_t window_right;
    int64_t max_queries; /* packed: of the longest sequence; 0: as many as q has rows */
    int64_t max_keys;    /* the same of keys; 0: as many as k has rows */
    int32_t mask;        /* TN_MASK_... */
    int32_t layout;      /* TN_LAYOUT_... of q, k, v, out */
    uint32_t set;
    int32_t backend; /* TN_BACKEND_... that is required; 0: what settings ask for, or the fastest */
    tn_stream *stream; /* NULL: the thread's current one of the tensors' device */
    void *workspace;   /* on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_attention_args;
TN_ENDS_WITH(tn_attention_args, workspace_bytes);

/* What tn_attention gave is taken back: dq, dk and dv of dout. q, k, v, out, lse, mask and numbers are those
 * of the call that gave out and lse; nothing packed, no pages, no sinks. */
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
} tn_attention_backward_args;
TN_ENDS_WITH(tn_attention_backward_args, workspace_bytes);

/* Two results over different keys become the one over all of them: out and lse of (in, lse_in) and (other,
 * lse_other). Each in, other and out is [batch, heads, queries, size] in the layout, each lse [batch,
 * heads, queries]. None of them shares memory with what is written. */
typedef struct tn_attention_merge_args {
    size_t struct_size;
    const tn_tensor *in;
    const tn_tensor *lse_in;
    const tn_tensor *other;
    const tn_tensor *lse_other;
    const tn_tensor *out;
    const tn_tensor *lse; /* NULL: not wanted */
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

/* What each would take and why, and making it ready: see explain.h and plan.h. */
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
