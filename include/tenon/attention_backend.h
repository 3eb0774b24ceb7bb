/* Attention backends: the names by which a model or a user requests an attention implementation,
 * which of them is used for a layer, and why the others are not.
 *
 * A kernel has the backend names that its row lists. A flash kernel is FLASH_ATTN and also, as a
 * member of the scaled-dot-product attention (SDPA) family, "flash" and TORCH_SDPA. sdpa.h has the
 * other members of the family. A backend can be requested from these places; an earlier one
 * overrides a later one:
 *
 *     the call           tn_attention_backend_args.backend, and tn_attention_args.backend
 *     a setting          attention.backend, at any level: a context, a scope, the process,
 *                        TENON_ATTENTION_BACKEND, the file
 *     the layer          its default
 *     none of these      the fastest kernel that is allowed
 *
 * A required backend is used, or the call fails. If a preferred backend cannot be used, the layer's
 * default is tried, then the fastest kernel, and the result says that it fell back. A backend is
 * never replaced silently. An unknown name is an error; the message names the closest match.
 *
 * Thread-safety: Safe. */
#ifndef TENON_ATTENTION_BACKEND_H
#define TENON_ATTENTION_BACKEND_H

#include "attention.h"
#include "explain.h"

TN_BEGIN_DECLS

/* Convert between TN_BACKEND_FLASH_ATTN and "FLASH_ATTN"; case is ignored. `name` returns
 * "unknown" for an unknown number; `find` fails with TN_NOT_FOUND and names the closest match.
 * Static text. */
TN_API const char *tn_attention_backend_name(int32_t backend);
TN_API tn_status tn_attention_backend_find(const char *name, int32_t *out, tn_error *err);

/* Describes an attention layer before its tensors exist. */
typedef struct tn_attention_backend_args {
    size_t struct_size;
    tn_device *device; /* may be a described device; NULL: the first of `platform`, or "best" if
                          that is NULL */
    const tn_platform *platform;
    const int32_t *supported; /* backends that the layer supports; NULL: all */
    size_t supported_count;
    int64_t head_size;
    int64_t value_size;  /* 0: head_size                 */
    int64_t heads;       /* 0: 1                         */
    int64_t groups;      /* heads of K and V; 0: `heads` */
    int64_t batch;       /* 0: 1                         */
    int64_t queries;     /* 0: 1024                      */
    int64_t keys;        /* 0: queries                   */
    int64_t window_left; /* for TN_MASK_WINDOW           */
    int64_t window_right;
    double dropout;
    tn_dtype dtype;
    tn_dtype mask_dtype;   /* TN_BOOL, or the dtype of an additive mask; 0: no mask tensor */
    int32_t mask;          /* TN_MASK_...                                                  */
    int32_t training;      /* 1: one backend must support both forward and backward pass   */
    int32_t backend;       /* requested TN_BACKEND_...; 0: none                            */
    int32_t strength;      /* strength of the request: TN_REQUIRE (same as 0) or TN_PREFER */
    int32_t layer_default; /* 0: none                                                      */
    int32_t reserved;
} tn_attention_backend_args;
TN_ENDS_WITH(tn_attention_backend_args, reserved);

/* Where the request for the chosen backend came from. */
enum {
    TN_BACKEND_FROM_AUTOMATIC = 0, /* no request, or the preferred backend could not be used */
    TN_BACKEND_FROM_LAYER,
    TN_BACKEND_FROM_SETTING,
    TN_BACKEND_FROM_ARGUMENT
};

/* The strings are valid as long as the process. */
typedef struct tn_attention_choice {
    size_t struct_size;
    const char *name;   /* "FLASH_ATTN"; or a name that only a module defines          */
    const char *kernel; /* the kernel that would run now; "" for NO_ATTENTION          */
    int32_t backend;    /* TN_BACKEND_...                                              */
    int32_t sdp;        /* its SDPA family member: TN_SDP_...; -1: none                */
    int32_t from;       /* TN_BACKEND_FROM_...                                         */
    int32_t fell_back;  /* 1: a preferred backend was not used; `why` has the reason   */
    char origin[256];   /* "argument", "environment: TENON_ATTENTION_BACKEND", "layer" */
    tn_refusal why;     /* code 0: nothing fell back                                   */
} tn_attention_choice;
TN_ENDS_WITH(tn_attention_choice, why);

/* Chooses the backend for a layer. Fails with TN_REFUSED if settings exclude a required backend;
 * with TN_UNSUPPORTED if no kernel here implements it, no kernel can compute the layer, or the
 * layer does not support the backend; with TN_NOT_FOUND if attention.backend has an unknown name.
 * Answers are cached by everything they depend on (settings, rules, modules, verdicts, timings,
 * ...), so a cached answer is never out of date. Answers that fell back, and errors, are not
 * cached. May open libraries, as tn_explain does. Set out->struct_size first. */
TN_API tn_status tn_attention_backend(const tn_context *context,
                                      const tn_attention_backend_args *args,
                                      tn_attention_choice *out, tn_error *err);

/* The same as a decision that lists every backend. Succeeds even if no backend can be used. */
TN_API tn_status tn_attention_backend_explain(const tn_context *context,
                                              const tn_attention_backend_args *args,
                                              tn_decision **out, tn_error *err);

struct tn_sdpa_report; /* sdpa.h */

/* A backend in a decision on attention. Valid as long as the decision. */
typedef struct tn_backend {
    size_t struct_size;
    const char *name;      /* "FLASH_ATTN", "flash"                                  */
    const char *family;    /* "TORCH_SDPA" for a member of its family; else ""       */
    const char *kernel;    /* the best of its kernels; "" for none                   */
    int32_t number;        /* TN_BACKEND_..., or TN_SDP_... if in the family; else 0 */
    int32_t verdict;       /* TN_VERDICT_...                                         */
    const tn_refusal *why; /* NULL unless it is refused or quarantined               */
    /* PyTorch's conditions for flash, mem_efficient and cudnn on cuda and rocm, each with its
     * outcome. They are evaluated whether or not there is a kernel, and the kernel can refuse for
     * other reasons. NULL for other backends and platforms. */
    const struct tn_sdpa_report *conditions;
} tn_backend;
TN_ENDS_WITH(tn_backend, conditions);

/* All named backends: the SDPA family directly after TORCH_SDPA, names that only modules define
 * last. The count is 0 for a decision on another op. */
TN_API size_t tn_decision_backend_count(const tn_decision *decision);
TN_API const tn_backend *tn_decision_backend(const tn_decision *decision, size_t index);

TN_END_DECLS

#endif
