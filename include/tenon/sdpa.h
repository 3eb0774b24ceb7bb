/* Scaled-dot-product attention as PyTorch divides it: a family of five, switches and an order for them, and
 * the conditions under which each can be used.
 *
 *     flash          scores are never kept
 *     mem_efficient  the same, of another hand
 *     math           the plain computation, which forms scores, blocks of rows at a time; the reference counts as one
 *     cudnn          cuDNN's
 *     overrideable   of platforms that are out of tree
 *
 * The switches are the settings cuda.flash_sdp, cuda.mem_efficient_sdp, cuda.math_sdp, cuda.cudnn_sdp and
 * cuda.overrideable_sdp, the order is cuda.sdp_priority, and cuda.allow_fp16_bf16_reduction_math_sdp lets
 * sums stay in 16 bits: tn_get_cuda_flash_sdp(NULL), tn_with_cuda_flash_sdp(0). They hold on every platform.
 * Without an order the kernel that is predicted or measured to be fastest comes first.
 *
 * Thread-safety: Safe; scopes as context.h says. */
#ifndef TENON_SDPA_H
#define TENON_SDPA_H

#include "context.h"
#include "device.h"
#include "module/kernel.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* "flash" for TN_SDP_FLASH; "unknown". Static text. */
TN_API const char *tn_sdp_name(int32_t sdp);

/* From now until tn_scope_leave the calling thread may take these of the family, TN_SDP_..., and no others;
 * with `set_priority` in this order, what is left out behind them as it was. One that is named twice
 * counts once. TN_INVALID_ARGUMENT for a number that is none and for an empty list: for no attention at all,
 * attention.backend=NO_ATTENTION. */
TN_API tn_status tn_sdpa_kernel_enter(tn_scope *scope, const int32_t *backends, size_t count,
                                      int32_t set_priority, tn_error *err);

/* The older form: four switches at once. The fifth stays as it is. */
TN_API tn_status tn_sdp_kernel_enter(tn_scope *scope, int32_t flash, int32_t math,
                                     int32_t mem_efficient, int32_t cudnn, tn_error *err);

/* Whether a kernel of the platform that modules brought is flash, and could run: its library is not known to
 * be absent, its instructions are there. NULL: the current platform. out_why, unless it is NULL, says why
 * not, or in its text which kernel; set its struct_size first. */
TN_API tn_status tn_is_flash_attention_available(const tn_platform *platform, int32_t *out,
                                                 tn_refusal *out_why, tn_error *err);

/* Whether one of rocm goes through the library ck. */
TN_API tn_status tn_is_ck_sdpa_available(int32_t *out, tn_refusal *out_why, tn_error *err);

/* One of q, k, v as it would lie: [batch, heads, length, size]. Nested, sequences have lengths of their own,
 * and length is that of the longest; -1 for heads or size that differ, too. Frozen. */
typedef struct tn_sdpa_tensor {
    tn_device *device;      /* may be described                                  */
    const int64_t *lengths; /* nested: of every sequence; NULL: they are unknown */
    tn_layout layout;       /* dtype 0: there is no such tensor, as a mask       */
    int32_t nested;
    int32_t requires_grad;
} tn_sdpa_tensor;

/* tn_sdpa_params.permits: what is experimental upstream and has to be asked for. */
#define TN_SDPA_PERMIT_CUDNN_NESTED UINT32_C(1)
#define TN_SDPA_PERMIT_AOTRITON     UINT32_C(2) /* on architectures that it calls experimental */

/* A call of scaled-dot-product attention as PyTorch describes it. */
typedef struct tn_sdpa_params {
    size_t struct_size;
    tn_sdpa_tensor query;
    tn_sdpa_tensor key;
    tn_sdpa_tensor value;
    tn_sdpa_tensor attn_mask;
    double dropout;
    int64_t
        library_version; /* of cuDNN (91002) or AOTriton (1200 is 0.12); 0: of the one that is here,
                                and where that is unknown, the newest                              */
    int32_t is_causal;
    int32_t enable_gqa;
    int32_t flash; /* which FlashAttention is meant: 0 or 2, 3, 4 */
    uint32_t permits;
} tn_sdpa_params;
TN_ENDS_WITH(tn_sdpa_params, permits);

/* The parameters of tensors; the mask may be NULL. Nothing is nested and nothing needs gradients. Set
 * out->struct_size first. */
TN_API tn_status tn_sdpa_params_get(const tn_tensor *query, const tn_tensor *key,
                                    const tn_tensor *value, const tn_tensor *attn_mask,
                                    double dropout, int32_t is_causal, int32_t enable_gqa,
                                    tn_sdpa_params *out, tn_error *err);

enum {
    TN_SDPA_HOLDS = 0,
    TN_SDPA_FAILS,
    TN_SDPA_NOT_ASKED /* it does not concern these parameters, or asks what they do not have */
};
TN_API const char *
tn_sdpa_outcome_name(int32_t outcome); /* "holds", "fails", "not-asked"; "unknown" */

/* One condition. Frozen. */
typedef struct tn_sdpa_check {
    const char *name; /* "head-size". Static text.                                            */
    int32_t outcome;  /* TN_SDPA_...                                                          */
    int32_t reserved;
    tn_refusal why; /* where it fails; else code 0, and the text may say what was assumed      */
} tn_sdpa_check;

#define TN_SDPA_CHECKS_MAX 40

/* All conditions, in upstream's order. */
typedef struct tn_sdpa_report {
    size_t struct_size;
    int32_t usable; /* 1: every one holds                   */
    int32_t first;  /* the first that fails; -1 for none    */
    size_t count;
    tn_sdpa_check checks[TN_SDPA_CHECKS_MAX];
} tn_sdpa_report;
TN_ENDS_WITH(tn_sdpa_report, checks);

/* Whether one of the family could be used for such a call, by upstream's conditions on cuda and rocm; on
 * other platforms by what their kernels say. A device that is only described is asked like one that is
 * here. Gradients count unless the setting `inference` is on. They succeed whatever the answer is, and fail
 * for parameters without a device or dtype. Set out->struct_size first. */
TN_API tn_status tn_can_use_flash_attention(const tn_context *context, const tn_sdpa_params *params,
                                            tn_sdpa_report *out, tn_error *err);
TN_API tn_status tn_can_use_efficient_attention(const tn_context *context,
                                                const tn_sdpa_params *params, tn_sdpa_report *out,
                                                tn_error *err);
TN_API tn_status tn_can_use_cudnn_attention(const tn_context *context, const tn_sdpa_params *params,
                                            tn_sdpa_report *out, tn_error *err);

TN_END_DECLS

#endif
