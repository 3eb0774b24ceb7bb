/* Block-sparse attention: attention in which each block of queries sees only some blocks of keys,
 * which are given as a mask or as lists. The time is proportional to the number of listed blocks.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_ATTENTION_SPARSE_H
#define TENON_ATTENTION_SPARSE_H

#include "attention.h"
#include "module/op/attention_sparse.h"

TN_BEGIN_DECLS

/* q, k, v, out and lse are as those of tn_attention, and so are scale, mask, the window, layout and
 * `set`. Blocks have block_queries queries and block_keys keys; the last ones may have fewer.
 *
 * Either block_mask is given: a boolean tensor that broadcasts to [batch, heads, query blocks, key
 * blocks], where true means that the queries see the keys. Or lists are given: the blocks of keys
 * that block n of the queries sees are the entries of `blocks` from starts[n] up to, not including,
 * starts[n + 1], in ascending order; `starts` broadcasts to [batch, heads, query blocks + 1].
 * block_sizes broadcasts to [batch, key blocks]: the number of valid keys of each block; its other
 * keys are excluded.
 *
 * With `order`, blocks are of slots instead: `order`, i32 and broadcast to [batch, slots], is the
 * token of each slot, a row of q, k, v, out and lse, for queries and for keys. So tokens need not be
 * copied into the order of the blocks. q and k have as many tokens, block_queries is block_keys, and
 * there is no mask. block_sizes says how many slots of each block are in use, its first ones, also
 * for queries. Each token has exactly one slot in use; the entries of the others are tokens, too,
 * which are read but have no effect.
 *
 * module/op/attention_sparse.h specifies the computation.
 *
 * Lists, sizes and orders are checked when the kernel runs on a processor: wrong ones fail with
 * TN_INVALID_ARGUMENT, and nothing is written. A GPU's kernels do not check them, so that a call
 * never waits and a graph can record it: they read nothing outside of the operands, but their
 * results are then unspecified.
 * Required operands: q, k, v; writes out; may write lse. */
typedef struct tn_attention_sparse_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *lse;         /* [batch, heads, queries]; NULL: not computed */
    const tn_tensor *block_mask;  /* NULL: `starts` and `blocks` are given */
    const tn_tensor *starts;      /* i32 */
    const tn_tensor *blocks;      /* i32 [entries] */
    const tn_tensor *block_sizes; /* i32; NULL: all keys exist */
    const tn_tensor *order;       /* i32; NULL: slots are tokens */
    double scale;                 /* 0: 1 / sqrt(size), unless TN_ATTENTION_SET_SCALE is in `set` */
    int64_t block_queries;        /* at least 1 */
    int64_t block_keys;
    int64_t window_left; /* for TN_MASK_WINDOW */
    int64_t window_right;
    int32_t mask;   /* TN_MASK_...: visible keys by position, within the listed blocks */
    int32_t layout; /* TN_LAYOUT_... of q, k, v, out */
    uint32_t set;
    int32_t reserved;
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_attention_sparse_args;
TN_ENDS_WITH(tn_attention_sparse_args, workspace_bytes);

TN_API tn_status tn_attention_sparse(const tn_context *context,
                                     const tn_attention_sparse_args *args, tn_error *err);

/* _explain reports which kernel a call would use, and why; _prepare makes its plan ahead of time.
 * See explain.h and plan.h. */
TN_API tn_status tn_attention_sparse_explain(const tn_context *context,
                                             const tn_attention_sparse_args *args,
                                             tn_decision **out, tn_error *err);
TN_API tn_status tn_attention_sparse_prepare(const tn_context *context,
                                             const tn_attention_sparse_args *args, tn_error *err);

TN_END_DECLS

#endif
