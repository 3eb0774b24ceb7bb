/* Devices: platform and index, also known by UUID and bus address.
 *
 * Fork: a device that was found before fork() cannot be used in the child: every call that would gives
 * TN_UNAVAILABLE, unless its platform survives that, as the cpu does. The worker view (worker.h) knows
 * the devices there; a process that is started anew can use them.
 *
 * Thread-safety: Safe. A device lives as long as the process, and so do the texts it lends. */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include "base.h"
#include "capability.h"
#include "platform.h"
#include "random.h"

TN_BEGIN_DECLS

typedef struct tn_device tn_device;

/* Every device of every platform, in the order they were found or described; finds them first. A
 * device keeps its place, unless a module is registered or taken back. NULL past the end. */
TN_API tn_status tn_device_count(size_t *out, tn_error *err);
TN_API tn_device *tn_device_at(size_t index);

/* By name ("cuda:1"; "cuda" is "cuda:0"), by UUID, by bus address, or by the name of its section in
 * a description; "best" for the current platform's device with the most memory; or by conditions,
 * separated by commas, that the best device must meet: "memory>=40g,capability>=9.0",
 * "platform=cuda,multi_processor_count>100". A condition is platform, name, architecture (= or !=),
 * capability, or a number of tn_device_properties by its word (= != < <= > >=, in bytes with k m g t);
 * what is unknown meets none. "best" and conditions pass over devices that are for planning only,
 * and over lost ones: TN_DEVICE_LOST when all that would do are lost.
 * TN_NOT_FOUND lists what is present and the nearest; TN_UNAVAILABLE gives the verdict on a platform
 * that has no device; TN_INVALID_ARGUMENT says where conditions make no sense. */
TN_API tn_status tn_device_get(const char *name, tn_device **out, tn_error *err);

TN_API int32_t tn_platform_device_count(const tn_platform *platform);
TN_API tn_status tn_platform_device_get(const tn_platform *platform, int32_t index, tn_device **out,
                                        tn_error *err);

TN_API const tn_platform *tn_device_platform(const tn_device *device);
TN_API int32_t tn_device_index(const tn_device *device);
TN_API const char *tn_device_id(const tn_device *device);     /* "cuda:1"                      */
TN_API const char *tn_device_name(const tn_device *device);   /* "NVIDIA H200"; "" unknown     */
TN_API const char *tn_device_uuid(const tn_device *device);   /* "" unknown                    */
TN_API const char *tn_device_bus(const tn_device *device);    /* "" unknown                    */
TN_API const char *tn_device_origin(const tn_device *device); /* "found", or "described in FILE" */

/* 1 when it is described and its platform cannot run it: plans can be made for it, and whatever
 * would run on it gives TN_UNAVAILABLE. */
TN_API int32_t tn_device_plans_only(const tn_device *device);

/* What does not change. Lent; read when the device was found, but for what takes long to find out, as CUDA's capability
 * and clocks do: that the first call asks for, in the process that found the device. */
TN_API const tn_device_properties *tn_device_properties_get(const tn_device *device);

/* How its memory stands now; changes no statistic. What cannot be known says why. Set
 * out->struct_size first. */
TN_API tn_status tn_device_memory_get(const tn_device *device, tn_device_memory *out,
                                      tn_error *err);

/* TN_UNSUPPORTED when its platform has no such thing, or does not tell. */
TN_API tn_status tn_device_capability(const tn_device *device, tn_capability *out, tn_error *err);

/* 0 when its capability is unknown. At least; the same; the same major (90 for any 9.x). An integer is
 * a pair as tn_capability_from_int reads it. */
TN_API int32_t tn_device_has_capability(const tn_device *device, tn_capability least);
TN_API int32_t tn_device_has_capability_int(const tn_device *device, int32_t least);
TN_API int32_t tn_device_is_capability(const tn_device *device, tn_capability same);
TN_API int32_t tn_device_is_capability_int(const tn_device *device, int32_t same);
TN_API int32_t tn_device_is_capability_family(const tn_device *device, int32_t number);

/* The dtypes it computes with, the default first, ended by 0; empty when unknown. */
TN_API const tn_dtype *tn_device_supported_dtypes(const tn_device *device);
TN_API tn_status tn_device_verify_dtype(const tn_device *device, tn_dtype dtype, tn_error *err);

/* Whether it computes with bf16; `including_emulation`: or with f32, to which bf16 can be widened and
 * from which it is rounded. 0 when it is unknown what it computes with. */
TN_API int32_t tn_device_supports_bf16(const tn_device *device, int32_t including_emulation);

/* Whether kernels in Triton could run on it, whether or not a compiler for them is here; 0 when that
 * is unknown. */
TN_API int32_t tn_device_is_triton_capable(const tn_device *device);

/* Whether it computes with 8-bit floats, and which comes first: 0 for none. AMD's older ones are of
 * another encoding, which ends in "fnuz". */
TN_API int32_t tn_device_supports_fp8(const tn_device *device);
TN_API tn_dtype tn_device_fp8_dtype(const tn_device *device);
TN_API int32_t tn_device_is_fp8_fnuz(const tn_device *device);

/* How data gets to another device of the same platform: TN_LINK_... TN_UNSUPPORTED when unknown. */
TN_API tn_status tn_device_link(const tn_device *from, const tn_device *to, int32_t *out,
                                tn_error *err);

/* 1 when every pair of the platform's devices is joined by links of its own; a single one is. */
TN_API tn_status tn_platform_is_fully_connected(const tn_platform *platform, int32_t *out,
                                                tn_error *err);

/* The generator of its random numbers, which tn_seed_everything seeds. Device n of every platform
 * has subsequence n, so a program that moves from one platform to another draws the same numbers.
 * Lent; never NULL but for a NULL device. */
TN_API tn_generator *tn_device_generator(const tn_device *device);

/* 1 when the platform has a device that runs. Never fails, and initialises nothing. A test may
 * replace the answer: 0, 1, or -1 for the true one again. */
TN_API int32_t tn_platform_is_available(const tn_platform *platform);
TN_API tn_status tn_platform_availability_replace(const tn_platform *platform, int32_t answer,
                                                  tn_error *err);

/* Waits for everything queued on it, by any thread. NULL: the current device. */
TN_API tn_status tn_device_synchronize(const tn_device *device, tn_error *err);

/* A device that failed (TN_DEVICE_LOST) stays lost: every call that would use it gives that status and
 * the first cause, which is also here; TN_OK while it is well. Resetting gives up all that was on it,
 * memory, streams and events included, which must not be used again, and opens it anew; of two threads
 * that do so at once one does it for both. TN_UNSUPPORTED where its platform cannot. */
TN_API tn_status tn_device_health(const tn_device *device, tn_error *err);
TN_API tn_status tn_device_reset(tn_device *device, tn_error *err);

/* The current device of the calling thread, one for each platform: a default for creating things,
 * no more, as operators take their device from their tensors. One rule for numbers everywhere: -1 is
 * no device, changes nothing and is no failure; another number that the platform does not have is
 * TN_NOT_FOUND, and TN_UNAVAILABLE with the verdict on a platform that is not ready; then nothing
 * changes.
 *
 * `exchange` gives the previous one and, like `set`, initialises the device, and so fails where it
 * cannot be used (TN_DEVICE_LOST, ...); `maybe_exchange` leaves that to its first use, and so cannot
 * fail on it: what guards restore with. Where the vendor has a current device of its own, `set` and
 * `exchange` move that too. */
TN_API int32_t tn_device_current(const tn_platform *platform); /* 0 until set; -1 without devices */
TN_API tn_status tn_device_set(const tn_platform *platform, int32_t index, tn_error *err);
TN_API tn_status tn_device_exchange(const tn_platform *platform, int32_t index,
                                    int32_t *out_previous, tn_error *err);
TN_API tn_status tn_device_maybe_exchange(const tn_platform *platform, int32_t index,
                                          int32_t *out_previous, tn_error *err);

/* 1 when it is initialised, so that its first use costs nothing more; 0 also when it cannot be used.
 * Initialises nothing. */
TN_API int32_t tn_device_is_initialized(const tn_device *device);

/* The device that NULL stands for where things are created: the current one of the current
 * platform. */
TN_API tn_status tn_device_default(tn_device **out, tn_error *err);

/* A scope in which a device is current. Zeroed is ready; belongs to the thread that entered it, and on
 * another one leaving it does nothing. It nests, restores on every path what was current when it was
 * entered, whatever happened inside, and cannot be entered twice (TN_BUSY). NULL: changes nothing.
 * What the vendor has as current (a CUcontext), by whomever it was made so, comes back, too. Frozen. */
typedef struct tn_device_guard {
    const tn_platform *platform; /* NULL: not entered, or nothing to restore */
    int32_t previous;
    int32_t entered; /* 0: it is not; below 0: with what the vendor had */
    void *vendors;
} tn_device_guard;

TN_API tn_status tn_device_guard_enter(tn_device_guard *guard, tn_device *device, tn_error *err);
TN_API void tn_device_guard_leave(tn_device_guard *guard); /* accepts NULL and one not entered */

/* Adds the devices of a description file (docs/descriptions.md): all of them or, when anything in
 * it is wrong, none, and the message has file, line and what was expected. */
TN_API tn_status tn_device_file_add(const char *path, tn_error *err);

TN_END_DECLS

#endif
