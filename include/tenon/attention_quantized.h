/* Quantized attention: the scores come from 8-bit integers, after the mean of the keys is subtracted
 * from K, and the weights and V may be quantized too. Faster than tn_attention, and less accurate.
 *
 * Thread-safety: Safe, if no other thread writes to the tensors. */
#ifndef TENON_ATTENTION_QUANTIZED_H
#define TENON_ATTENTION_QUANTIZED_H

#include "attention.h"
#include "module/op/attention_quantized.h"

TN_BEGIN_DECLS

/* q, k, v, out and lse are as those of tn_attention, except that f64 is not supported, and so are
 * scale, mask, the window, layout and `set`. Masks of other kinds, softcap, dropout and sinks are not
 * supported.
 *
 * `weights` is the precision of the second product, softmax times V: TN_F32 (also 0), TN_F16,
 * TN_F8_E4M3FN, TN_U8 (fastest on CPUs) or TN_I8. module/op/attention_quantized.h specifies the
 * computation. Required operands: q, k, v; writes out; may write lse. */
typedef struct tn_attention_quantized_args {
    size_t struct_size;
    const tn_tensor *q;
    const tn_tensor *k;
    const tn_tensor *v;
    const tn_tensor *out;
    const tn_tensor *lse; /* [batch, heads, queries]; NULL: not computed */
    double scale;         /* 0: 1 / sqrt(size), unless TN_ATTENTION_SET_SCALE is in `set` */
    int64_t window_left;  /* for TN_MASK_WINDOW */
    int64_t window_right;
    int32_t mask;   /* TN_MASK_... */
    int32_t layout; /* TN_LAYOUT_... of q, k, v, out */
    uint32_t set;
    tn_dtype weights;
    int32_t scales;    /* TN_SCALES_...: rows that share a scale */
    int32_t smoothing; /* TN_SMOOTHING_... */
    tn_stream *stream; /* NULL: the calling thread's current stream of the tensors' device */
    void *workspace;   /* memory on that device; NULL: the stream's own */
    uint64_t workspace_bytes;
} tn_attention_quantized_args;
TN_ENDS_WITH(tn_attention_quantized_args, workspace_bytes);

TN_API tn_status tn_attention_quantized(const tn_context *context,
                                        const tn_attention_quantized_args *args, tn_error *err);

/* _explain reports which kernel a call would use, and why; _prepare makes its plan ahead of time.
 * See explain.h and plan.h. */
TN_API tn_status tn_attention_quantized_explain(const tn_context *context,
                                                const tn_attention_quantized_args *args,
                                                tn_decision **out, tn_error *err);
TN_API tn_status tn_attention_quantized_prepare(const tn_context *context,
                                                const tn_attention_quantized_args *args,
                                                tn_error *err);

TN_END_DECLS

#endif
