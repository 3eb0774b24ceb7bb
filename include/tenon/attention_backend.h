/* Backends of attention: names that a model or a user asks for it by, which of them computes a layer, and
 * why not the others.
 *
 * A kernel goes by the names of its row: a flash kernel by FLASH_ATTN and, as one of the family of
 * scaled-dot-product attention, by "flash" and TORCH_SDPA; the others of the family are in sdpa.h. Who asks,
 * the nearest first:
 *
 *     the call           a request of tn_attention_backend, and tn_attention_args.backend
 *     a setting          attention.backend, of whatever level: a context, a scope, the process,
 *                        TENON_ATTENTION_BACKEND, the file
 *     the layer          its default
 *     nobody             the fastest kernel that is permitted
 *
 * What is required is taken or the answer is an error; what is preferred gives way to what the layer has as
 * its default, then to the fastest, and the answer says so. Nothing is ever taken silently in place of
 * something else, and a name that nobody knows is an error with the nearest.
 *
 * Thread-safety: Safe. */
#ifndef TENON_ATTENTION_BACKEND_H
#define TENON_ATTENTION_BACKEND_H

#include "attention.h"
#include "explain.h"

TN_BEGIN_DECLS

/* "FLASH_ATTN" for TN_BACKEND_FLASH_ATTN, and back; case does not count. "unknown"; TN_NOT_FOUND with the
 * nearest. Static text. */
TN_API const char *tn_attention_backend_name(int32_t backend);
TN_API tn_status tn_attention_backend_find(const char *name, int32_t *out, tn_error *err);

/* A layer of attention, before there are tensors. */
typedef struct tn_attention_backend_args {
    size_t struct_size;
    tn_device *device; /* may be described; NULL: the platform's first, or "best" */
    const tn_platform *platform;
    const int32_t *supported; /* the backends that the layer can use; NULL: all */
    size_t supported_count;
    int64_t head_size;
    int64_t value_size;  /* 0: head_size                       */
    int64_t heads;       /* 0: 1                               */
    int64_t groups;      /* heads of keys and values; 0: heads */
    int64_t batch;       /* 0: 1                               */
    int64_t queries;     /* 0: 1024                            */
    int64_t keys;        /* 0: queries                         */
    int64_t window_left; /* of TN_MASK_WINDOW                  */
    int64_t window_right;
    double dropout;
    tn_dtype dtype;
    tn_dtype mask_dtype;   /* TN_BOOL, or of numbers that are added; 0: no mask tensor           */
    int32_t mask;          /* TN_MASK_...                                                        */
    int32_t training;      /* 1: gradients will be asked for, so that one backend must have both */
    int32_t backend;       /* the request: TN_BACKEND_...; 0: none                               */
    int32_t strength;      /* of the request: TN_REQUIRE, also for 0, or TN_PREFER               */
    int32_t layer_default; /* 0: none                                                            */
    int32_t reserved;
} tn_attention_backend_args;
TN_ENDS_WITH(tn_attention_backend_args, reserved);

/* Who asked for what is taken. */
enum {
    TN_BACKEND_FROM_AUTOMATIC = 0, /* nobody, or what was preferred could not be taken */
    TN_BACKEND_FROM_LAYER,
    TN_BACKEND_FROM_SETTING,
    TN_BACKEND_FROM_ARGUMENT
};

/* Texts are lent as long as the process. */
typedef struct tn_attention_choice {
    size_t struct_size;
    const char *name;   /* "FLASH_ATTN"; a stranger's own                                 */
    const char *kernel; /* that would compute it now; "" for NO_ATTENTION                 */
    int32_t backend;    /* TN_BACKEND_...                                                 */
    int32_t sdp;        /* which of the family it is: TN_SDP_...; -1: none                */
    int32_t from;       /* TN_BACKEND_FROM_...                                            */
    int32_t fell_back;  /* 1: something was preferred, and `why` says why it is not taken */
    char origin[256];   /* "argument", "environment: TENON_ATTENTION_BACKEND", "layer"    */
    tn_refusal why;     /* code 0: nothing fell back                                      */
} tn_attention_choice;
TN_ENDS_WITH(tn_attention_choice, why);

/* Which backend computes the layer. TN_REFUSED for one that is required and kept out by settings;
 * TN_UNSUPPORTED when no kernel here is it, or can, or the layer does not support it; TN_NOT_FOUND for a name
 * of attention.backend that nobody knows. An answer is kept by everything that it follows from, settings,
 * rules, modules, verdicts and timings among it, so that it is never out of date; what fell back, and errors,
 * are found anew. Opens libraries as tn_explain does. Set out->struct_size first. */
TN_API tn_status tn_attention_backend(const tn_context *context,
                                      const tn_attention_backend_args *args,
                                      tn_attention_choice *out, tn_error *err);

/* The same as a decision, with every backend in it; succeeds also when nothing would be taken. */
TN_API tn_status tn_attention_backend_explain(const tn_context *context,
                                              const tn_attention_backend_args *args,
                                              tn_decision **out, tn_error *err);

struct tn_sdpa_report; /* sdpa.h */

/* A backend in a decision on attention. Lent as long as the decision. */
typedef struct tn_backend {
    size_t struct_size;
    const char *name;      /* "FLASH_ATTN", "flash"                                         */
    const char *family;    /* "TORCH_SDPA" for one of its family; else ""                   */
    const char *kernel;    /* the best of its kernels; "" for none                          */
    int32_t number;        /* TN_BACKEND_..., of the family TN_SDP_...; 0 for a stranger's  */
    int32_t verdict;       /* TN_VERDICT_...                                                */
    const tn_refusal *why; /* NULL unless it is refused or in quarantine                    */
    /* Upstream's conditions of flash, mem_efficient and cudnn on cuda and rocm, each with its outcome, whether or
     * not there is a kernel, which has a say of its own; else NULL. */
    const struct tn_sdpa_report *conditions;
} tn_backend;
TN_ENDS_WITH(tn_backend, conditions);

/* Every backend that has a name, the family behind TORCH_SDPA, strangers last; 0 for another op. */
TN_API size_t tn_decision_backend_count(const tn_decision *decision);
TN_API const tn_backend *tn_decision_backend(const tn_decision *decision, size_t index);

TN_END_DECLS

#endif
