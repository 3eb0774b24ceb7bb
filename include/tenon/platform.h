/* Platforms: the kinds of hardware of this machine, the evidence for and against each, and which
 * one is current.
 *
 * A machine may have several. Each has one of these verdicts. They follow from evidence that is
 * collected without opening a library or waking a device, and from the probe of the platform's
 * module:
 *
 *     ready      its module found devices, or can serve described ones
 *     hidden     devices may exist, but the variable that selects them hides all
 *     broken     hardware and driver exist, but the probe failed, or this user may not use them
 *     no-module  there is evidence of it, but no Tenon module serves it here
 *     no-driver  the hardware exists, but its driver or library does not
 *     absent     there is no evidence of its hardware
 *
 * The current platform, from whose devices "best" chooses, is resolved once, when first needed: the
 * one that the program selected, else the one that TENON_PLATFORM names, else the first eligible
 * one that is ready, in this order: cuda, rocm, tpu, mps, xpu, npu, opencl, out-of-tree platforms,
 * cpu. A request that cannot be met fails; it is never replaced by another platform.
 *
 * The platform of a module that does not ship with Tenon is eligible if modules have a kernel for
 * it for every operator that has one on the cpu. If some are missing, the platform is current only
 * if requested by name; its report lists the missing operators. A stand-in (TN_PLATFORM_STAND_IN)
 * is never eligible.
 *
 * Thread-safety: Safe. A platform and the strings it returns are valid as long as the process. */
#ifndef TENON_PLATFORM_H
#define TENON_PLATFORM_H

#include "base.h"
#include "module/platform.h"

TN_BEGIN_DECLS

typedef struct tn_platform tn_platform;

typedef int32_t tn_platform_verdict;
enum {
    TN_PLATFORM_READY = 0,
    TN_PLATFORM_HIDDEN,
    TN_PLATFORM_BROKEN,
    TN_PLATFORM_NO_MODULE,
    TN_PLATFORM_NO_DRIVER,
    TN_PLATFORM_ABSENT,
    TN_PLATFORM_VERDICT_COUNT
};

/* The words above; "unknown" otherwise. Static text. */
TN_API const char *tn_platform_verdict_name(tn_platform_verdict verdict);

/* "cpu", "cuda", ..., "out-of-tree", "unspecified"; "unknown" otherwise. Static text. */
TN_API const char *tn_platform_kind_name(int32_t kind);

/* The current platform; resolves it first, which finds modules. Fails with TN_NOT_FOUND if the
 * platform in TENON_PLATFORM is unknown (with the closest match), or with TN_UNAVAILABLE if it is
 * not ready (with the reason). Where a platform is expected, a program that has none yet can pass
 * tn_platform_unspecified() or NULL. */
TN_API tn_status tn_platform_current(const tn_platform **out, tn_error *err);

/* Makes `name` the current platform of the process; fails as above, and then changes nothing. NULL
 * removes the request: the next tn_platform_current resolves again. */
TN_API tn_status tn_platform_select(const char *name, tn_error *err);

/* Finds a platform by name, whatever its verdict: planning for absent hardware is allowed. Fails
 * with TN_NOT_FOUND if neither a module nor Tenon knows it. */
TN_API tn_status tn_platform_get(const char *name, const tn_platform **out, tn_error *err);

/* Stands for "no platform". It answers every query: predicates return 0, names are "", except its
 * own, "unspecified", and its dispatch key, "CPU", as FastVideo's. Every call that can fail returns
 * TN_UNAVAILABLE and says what to do. */
TN_API const tn_platform *tn_platform_unspecified(void);

/* Names. Never NULL. */
TN_API const char *tn_platform_name(const tn_platform *platform);        /* "cuda"              */
TN_API const char *tn_platform_device_name(const tn_platform *platform); /* "cuda"; "CPU"       */
TN_API const char *tn_platform_device_type(const tn_platform *platform); /* ROCm's is "cuda"    */
TN_API const char *
tn_platform_dispatch_key(const tn_platform *platform); /* "CUDA", "PrivateUse1" */
TN_API const char *tn_platform_visible_variable(const tn_platform *platform); /* "" for none */

TN_API int32_t tn_platform_kind(const tn_platform *platform);
TN_API int32_t tn_platform_is_cpu(const tn_platform *platform);
TN_API int32_t tn_platform_is_cuda(const tn_platform *platform);
TN_API int32_t tn_platform_is_rocm(const tn_platform *platform);
TN_API int32_t tn_platform_is_tpu(const tn_platform *platform);
TN_API int32_t tn_platform_is_mps(const tn_platform *platform);
TN_API int32_t tn_platform_is_xpu(const tn_platform *platform);
TN_API int32_t tn_platform_is_npu(const tn_platform *platform);
TN_API int32_t tn_platform_is_out_of_tree(const tn_platform *platform);
TN_API int32_t tn_platform_is_cuda_alike(const tn_platform *platform); /* cuda or rocm */

/* The name of the kernel language, and of the communicator, that a module offers for this platform;
 * "" if none exists, and then *out_reason, unless out_reason is NULL, says so. */
TN_API const char *tn_platform_simple_compile_backend(const tn_platform *platform,
                                                      const char **out_reason);
TN_API const char *tn_platform_communicator(const tn_platform *platform, const char **out_reason);

/* The quantizations, or model architectures, that it supports: a list that ends with NULL; an empty
 * list means everything. Never NULL. */
TN_API const char *const *tn_platform_supported_quantization(const tn_platform *platform);
TN_API const char *const *tn_platform_supported_model_arch(const tn_platform *platform);

/* Fails with TN_UNSUPPORTED if it does not support `name`; the message has the list and the closest
 * match. */
TN_API tn_status tn_platform_verify_quantization(const tn_platform *platform, const char *name,
                                                 tn_error *err);
TN_API tn_status tn_platform_verify_model_arch(const tn_platform *platform, const char *name,
                                               tn_error *err);

/* Whether results can be fetched while later work runs. `enforce_eager`: without a graph or
 * compiled program. *out_reason, unless out_reason is NULL, gets the reason for either answer. */
TN_API tn_status tn_platform_is_async_output_supported(const tn_platform *platform,
                                                       int32_t enforce_eager, int32_t *out,
                                                       const char **out_reason, tn_error *err);

/* 1 if the setting "inference" (tn_with_inference) is on: then kernels that save nothing for a
 * backward pass may be used. */
TN_API int32_t tn_platform_inference_mode(const tn_platform *platform);

/* Three ways to number the devices of a platform:
 *     physical  as the driver numbers them before any variable hides some
 *     visible   as this process sees them: the n-th entry of the variable's list. Tenon's own
 *               indices, as in "cuda:1", are visible ones
 *     logical   as the program numbers them: the n-th that it assigned; if none, as visible */
enum { TN_ID_LOGICAL = 0, TN_ID_VISIBLE, TN_ID_PHYSICAL };

/* Assigns the program's logical numbers: logical i is physical[i]. Can be done once: the same list
 * again is accepted, another one fails with TN_ALREADY_EXISTS. */
TN_API tn_status tn_platform_ids_assign(const tn_platform *platform, const int32_t *physical,
                                        size_t count, tn_error *err);

/* Fails with TN_NOT_FOUND if the number does not exist in from_space or is hidden in to_space; with
 * TN_UNSUPPORTED if the variable names a device by UUID and its number is unknown. */
TN_API tn_status tn_platform_id_convert(const tn_platform *platform, int32_t from_space, int32_t id,
                                        int32_t to_space, int32_t *out, tn_error *err);

/* One piece of evidence. Strings are valid until the list is released. */
typedef struct tn_platform_evidence {
    size_t struct_size;
    const char *what;  /* "file /dev/nvidiactl", "module cuda", "variable CUDA_VISIBLE_DEVICES";
                          "properties of cuda:0" only if they are missing or invalid */
    const char *found; /* "absent", "present", "4 devices, the first 0000:3b:00.0", ... */
    const char *shows; /* "hardware", "driver", "library", "module", "choice"           */
    int32_t holds;     /* 1: present, 0: absent, -1: could not be checked               */
    int32_t reserved;
} tn_platform_evidence;
TN_ENDS_WITH(tn_platform_evidence, reserved);

typedef struct tn_platform_report {
    size_t struct_size;
    const tn_platform *platform;
    const char *name;
    const char *module; /* module that serves it; "" for none     */
    const char *reason; /* reason for the verdict, one sentence   */
    const char *remedy; /* how to fix it; "" if nothing is needed */
    tn_platform_verdict verdict;
    int32_t kind;
    int32_t devices; /* devices found, not counting described ones */
    int32_t current; /* 1 for the current platform                 */
    size_t evidence_count;
} tn_platform_report;
TN_ENDS_WITH(tn_platform_report, evidence_count);

/* Creates a snapshot of all platforms that Tenon or a module knows, best first, with freshly
 * collected evidence. Resolves the current platform; if that fails, the list is still created and
 * its choice says why. The caller must release it. */
typedef struct tn_platform_list tn_platform_list;
TN_API tn_status tn_platform_list_create(tn_platform_list **out, tn_error *err);
TN_API void tn_platform_list_release(tn_platform_list *list);

/* Borrowed until the list is released; NULL past the end, 0 for a NULL list. */
TN_API size_t tn_platform_list_count(const tn_platform_list *list);
TN_API const tn_platform_report *tn_platform_list_get(const tn_platform_list *list, size_t index);
TN_API const tn_platform_evidence *tn_platform_list_evidence(const tn_platform_list *list,
                                                             size_t index, size_t evidence);

/* How the current platform was chosen, in one sentence; and TN_OK, or why there is no current
 * platform. */
TN_API const char *tn_platform_list_choice(const tn_platform_list *list);
TN_API tn_status tn_platform_list_choice_status(const tn_platform_list *list);

TN_END_DECLS

#endif
