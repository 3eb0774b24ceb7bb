/* Scaled-dot-product attention (SDPA) as PyTorch divides it: a family of five members, switches and
 * an order for them, and the conditions under which each can be used.
 *
 *     flash          does not store the scores
 *     mem_efficient  the same, another implementation
 *     math           the plain computation, which stores scores, in blocks of rows; the reference
 *                    counts as math
 *     cudnn          cuDNN's
 *     overrideable   for out-of-tree platforms
 *
 * The switches are the settings cuda.flash_sdp, cuda.mem_efficient_sdp, cuda.math_sdp,
 * cuda.cudnn_sdp and cuda.overrideable_sdp; the order is cuda.sdp_priority;
 * cuda.allow_fp16_bf16_reduction_math_sdp allows sums in 16 bits: tn_get_cuda_flash_sdp(NULL),
 * tn_with_cuda_flash_sdp(0). They apply on every platform. Without an order, the kernel that is
 * predicted or measured to be the fastest is preferred.
 *
 * Thread-safety: Safe; for scopes see context.h. */
#ifndef TENON_SDPA_H
#define TENON_SDPA_H

#include "context.h"
#include "device.h"
#include "module/kernel.h"
#include "tensor.h"

TN_BEGIN_DECLS

/* "flash" for TN_SDP_FLASH; "unknown". Static text. */
TN_API const char *tn_sdp_name(int32_t sdp);

/* Until tn_scope_leave, the calling thread may use only these members of the family
 * (TN_SDP_...). With `set_priority`, they are also preferred in this order; the members not
 * listed follow in their current order. A member named twice counts once. Fails with
 * TN_INVALID_ARGUMENT for an invalid number and for an empty list; to disable attention, use
 * attention.backend=NO_ATTENTION. */
TN_API tn_status tn_sdpa_kernel_enter(tn_scope *scope, const int32_t *backends, size_t count,
                                      int32_t set_priority, tn_error *err);

/* The older form: sets four switches at once. The fifth is unchanged. */
TN_API tn_status tn_sdp_kernel_enter(tn_scope *scope, int32_t flash, int32_t math,
                                     int32_t mem_efficient, int32_t cudnn, tn_error *err);

/* Whether a module has a flash kernel for the platform that could run: its library is not known to
 * be absent, and its instructions are available. NULL: the current platform. *out_why, unless
 * out_why is NULL, gets the reason if not, else the name of the kernel in its text; set its
 * struct_size first. */
TN_API tn_status tn_is_flash_attention_available(const tn_platform *platform, int32_t *out,
                                                 tn_refusal *out_why, tn_error *err);

/* The same for a rocm kernel that uses the library ck. */
TN_API tn_status tn_is_ck_sdpa_available(int32_t *out, tn_refusal *out_why, tn_error *err);

/* The layout of one of q, k, v: [batch, heads, length, size]. In a nested tensor each sequence has
 * its own length; `length` is then that of the longest, and heads or size is -1 if it differs
 * between sequences. Frozen. */
typedef struct tn_sdpa_tensor {
    tn_device *device;      /* may be a described device                          */
    const int64_t *lengths; /* nested: the length of each sequence; NULL: unknown */
    tn_layout layout;       /* dtype 0: tensor is absent (a mask)                 */
    int32_t nested;
    int32_t requires_grad;
} tn_sdpa_tensor;

/* Bits of tn_sdpa_params.permits: features that are experimental in PyTorch and must be enabled. */
#define TN_SDPA_PERMIT_CUDNN_NESTED UINT32_C(1)
#define TN_SDPA_PERMIT_AOTRITON     UINT32_C(2) /* on architectures it calls experimental */

/* A call of scaled-dot-product attention as PyTorch describes it. */
typedef struct tn_sdpa_params {
    size_t struct_size;
    tn_sdpa_tensor query;
    tn_sdpa_tensor key;
    tn_sdpa_tensor value;
    tn_sdpa_tensor attn_mask;
    double dropout;
    int64_t
        library_version; /* of cuDNN (91002) or AOTriton (1200 is 0.12); 0: the installed one; if
                            that is unknown, the newest */
    int32_t is_causal;
    int32_t enable_gqa;
    int32_t flash; /* FlashAttention version: 0 or 2, 3, 4 */
    uint32_t permits;
} tn_sdpa_params;
TN_ENDS_WITH(tn_sdpa_params, permits);

/* Makes the parameters from tensors; the mask may be NULL. No tensor is nested or requires
 * gradients. Set out->struct_size first. */
TN_API tn_status tn_sdpa_params_get(const tn_tensor *query, const tn_tensor *key,
                                    const tn_tensor *value, const tn_tensor *attn_mask,
                                    double dropout, int32_t is_causal, int32_t enable_gqa,
                                    tn_sdpa_params *out, tn_error *err);

enum {
    TN_SDPA_HOLDS = 0,
    TN_SDPA_FAILS,
    TN_SDPA_NOT_ASKED /* does not apply to these parameters, or needs information they lack */
};
TN_API const char *
tn_sdpa_outcome_name(int32_t outcome); /* "holds", "fails", "not-asked"; "unknown" */

/* One condition. Frozen. */
typedef struct tn_sdpa_check {
    const char *name; /* "head-size". Static text. */
    int32_t outcome;  /* TN_SDPA_...               */
    int32_t reserved;
    tn_refusal why; /* reason if it fails; else code 0, and the text may name an assumption */
} tn_sdpa_check;

#define TN_SDPA_CHECKS_MAX 40

/* All conditions, in PyTorch's order. */
typedef struct tn_sdpa_report {
    size_t struct_size;
    int32_t usable; /* 1: all conditions hold                  */
    int32_t first;  /* index of the first that fails; -1: none */
    size_t count;
    tn_sdpa_check checks[TN_SDPA_CHECKS_MAX];
} tn_sdpa_report;
TN_ENDS_WITH(tn_sdpa_report, checks);

/* Whether a member of the family could be used for such a call: by PyTorch's conditions on cuda and
 * rocm; on other platforms by what their kernels accept. A described device is treated like one
 * that is present. Gradients count unless the setting `inference` is on. These succeed whatever the
 * answer; they fail for parameters without a device or dtype. Set out->struct_size first. */
TN_API tn_status tn_can_use_flash_attention(const tn_context *context, const tn_sdpa_params *params,
                                            tn_sdpa_report *out, tn_error *err);
TN_API tn_status tn_can_use_efficient_attention(const tn_context *context,
                                                const tn_sdpa_params *params, tn_sdpa_report *out,
                                                tn_error *err);
TN_API tn_status tn_can_use_cudnn_attention(const tn_context *context, const tn_sdpa_params *params,
                                            tn_sdpa_report *out, tn_error *err);

TN_END_DECLS

#endif
