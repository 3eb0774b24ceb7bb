/* Platforms: the kinds of hardware this machine has, what speaks for and against each, and which
 * one is current.
 *
 * Several at once is normal. Each has one of these verdicts, from traces that are looked for without
 * opening a library or waking a device, and from what its module's probe said:
 *
 *     ready      its module found devices, or can serve described ones
 *     hidden     devices may be there, but the variable that selects them hides all
 *     broken     hardware and driver are there, but the probe failed, or this user may not use them
 *     no-module  there are traces of it, but no module of Tenon serves it here
 *     no-driver  hardware is there, but its driver or library is not
 *     absent     nothing speaks for its hardware
 *
 * The current platform, whose devices "best" chooses from, is resolved once, at the first need: the
 * one the program selected, else the one TENON_PLATFORM names, else the first that is ready and takes
 * part, in this order: cuda, rocm, tpu, mps, xpu, npu, opencl, platforms out of tree, cpu. A request
 * that cannot be met is refused, never replaced.
 *
 * The platform of a module that does not ship with Tenon takes part when modules have a kernel of it
 * for every operator that the cpu has one for. One that lacks some is current only when it is asked
 * for by name; its report says which operators it lacks. A stand-in (TN_PLATFORM_STAND_IN) never
 * takes part.
 *
 * Thread-safety: Safe. A platform lives as long as the process; texts it lends do too. */
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

/* The current platform; resolves it first, finding modules. TN_NOT_FOUND names a TENON_PLATFORM
 * that no one knows, and the nearest; TN_UNAVAILABLE one that is not ready, and why. A program
 * that has none yet can pass tn_platform_unspecified(), or NULL, wherever a platform is asked for. */
TN_API tn_status tn_platform_current(const tn_platform **out, tn_error *err);

/* Makes `name` current, for the whole process; fails as above and then changes nothing. NULL takes
 * the wish back: the next tn_platform_current resolves anew. */
TN_API tn_status tn_platform_select(const char *name, tn_error *err);

/* By name, whatever its verdict: planning for absent hardware is allowed. TN_NOT_FOUND when neither
 * a module nor Tenon knows it. */
TN_API tn_status tn_platform_get(const char *name, const tn_platform **out, tn_error *err);

/* The one that stands for none. It answers every query: predicates are false, words are "" (its
 * name is "unspecified"), and whatever can fail gives TN_UNAVAILABLE and says what to do. */
TN_API const tn_platform *tn_platform_unspecified(void);

/* Words. Never NULL. */
TN_API const char *tn_platform_name(const tn_platform *platform);        /* "cuda"               */
TN_API const char *tn_platform_device_name(const tn_platform *platform); /* for people: "CUDA"   */
TN_API const char *tn_platform_device_type(const tn_platform *platform); /* ROCm's is "cuda"     */
TN_API const char *
tn_platform_dispatch_key(const tn_platform *platform); /* "CUDA", "PrivateUse1" */
TN_API const char *tn_platform_visible_variable(const tn_platform *platform); /* "" for none      */

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

/* The name of a kernel language, and of a communicator, that a module offers for this platform; ""
 * when none does, and then *out_reason, unless it is NULL, says so. */
TN_API const char *tn_platform_simple_compile_backend(const tn_platform *platform,
                                                      const char **out_reason);
TN_API const char *tn_platform_communicator(const tn_platform *platform, const char **out_reason);

/* The quantizations, or model architectures, it supports: a NULL-ended list; an empty one means
 * everything. Never NULL. */
TN_API const char *const *tn_platform_supported_quantization(const tn_platform *platform);
TN_API const char *const *tn_platform_supported_model_arch(const tn_platform *platform);

/* TN_UNSUPPORTED names the list and the nearest. */
TN_API tn_status tn_platform_verify_quantization(const tn_platform *platform, const char *name,
                                                 tn_error *err);
TN_API tn_status tn_platform_verify_model_arch(const tn_platform *platform, const char *name,
                                               tn_error *err);

/* Whether results can be fetched while later work runs; `enforce_eager`: without a graph or a
 * compiled program. *out_reason, unless it is NULL, gets the reason for either answer. */
TN_API tn_status tn_platform_is_async_output_supported(const tn_platform *platform,
                                                       int32_t enforce_eager, int32_t *out,
                                                       const char **out_reason, tn_error *err);

/* Whether the calling code is inside an inference scope, in which kernels that keep nothing for a
 * backward pass may be taken: the setting "inference" (tn_with_inference). */
TN_API int32_t tn_platform_inference_mode(const tn_platform *platform);

/* Three ways to number a platform's devices:
 *     physical  as the driver numbers them before any variable hides some
 *     visible   as this process sees them: the n-th entry of the variable's list. Tenon's own
 *               indices, as in "cuda:1", are these
 *     logical   as the program numbers them: the n-th that it assigned, or else visible ones */
enum { TN_ID_LOGICAL = 0, TN_ID_VISIBLE, TN_ID_PHYSICAL };

/* Assigns the program's logical numbers: logical i is physical[i]. Once: the same list again is
 * fine, another gives TN_ALREADY_EXISTS. */
TN_API tn_status tn_platform_ids_assign(const tn_platform *platform, const int32_t *physical,
                                        size_t count, tn_error *err);

/* TN_NOT_FOUND for a number that does not exist in the space asked from, or is hidden in the one
 * asked for; TN_UNSUPPORTED when the variable names a device by UUID whose number is unknown. */
TN_API tn_status tn_platform_id_convert(const tn_platform *platform, int32_t from_space, int32_t id,
                                        int32_t to_space, int32_t *out, tn_error *err);

/* One piece of evidence. Texts are lent by the list that holds it. */
typedef struct tn_platform_evidence {
    size_t struct_size;
    const char *what;  /* "file /dev/nvidiactl", "module cuda", "variable CUDA_VISIBLE_DEVICES";
                          "properties of cuda:0" only when they are not told, or cannot be  */
    const char *found; /* "absent", "present", "4 devices, the first 0000:3b:00.0", ...      */
    const char *shows; /* "hardware", "driver", "library", "module", "choice"                 */
    int32_t holds;     /* 1 it is there, 0 it is not, -1 it could not be looked at            */
    int32_t reserved;
} tn_platform_evidence;
TN_ENDS_WITH(tn_platform_evidence, reserved);

typedef struct tn_platform_report {
    size_t struct_size;
    const tn_platform *platform;
    const char *name;
    const char *module; /* that serves it; "" for none                  */
    const char *reason; /* one sentence for the verdict                  */
    const char *remedy; /* what would help; "" when nothing is needed    */
    tn_platform_verdict verdict;
    int32_t kind;
    int32_t devices; /* found, without described ones */
    int32_t current; /* 1 for the current platform    */
    size_t evidence_count;
} tn_platform_report;
TN_ENDS_WITH(tn_platform_report, evidence_count);

/* A snapshot of every platform that Tenon or a module knows, best first, with the evidence looked
 * for anew. Resolves the current platform; when that fails the list is made all the same and its
 * choice says why. Given: release it. */
typedef struct tn_platform_list tn_platform_list;
TN_API tn_status tn_platform_list_create(tn_platform_list **out, tn_error *err);
TN_API void tn_platform_list_release(tn_platform_list *list);

/* Lent until the list is released; NULL past the end, 0 for a NULL list. */
TN_API size_t tn_platform_list_count(const tn_platform_list *list);
TN_API const tn_platform_report *tn_platform_list_get(const tn_platform_list *list, size_t index);
TN_API const tn_platform_evidence *tn_platform_list_evidence(const tn_platform_list *list,
                                                             size_t index, size_t evidence);

/* How the current platform was chosen, in one sentence; and TN_OK, or why there is none. */
TN_API const char *tn_platform_list_choice(const tn_platform_list *list);
TN_API tn_status tn_platform_list_choice_status(const tn_platform_list *list);

TN_END_DECLS

#endif
