/* Devices, identified by platform and index, by UUID or by bus address.
 *
 * Fork: a device that was found before fork() cannot be used in the child. Every call that would
 * use it fails with TN_UNAVAILABLE, unless its platform supports fork, as the cpu does. In the
 * child, the worker view (worker.h) still describes the devices; a newly started process can use
 * them.
 *
 * Thread-safety: Safe. A device and the strings it returns are valid as long as the process. */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include "base.h"
#include "capability.h"
#include "platform.h"
#include "random.h"

TN_BEGIN_DECLS

typedef struct tn_device tn_device;

/* All devices of all platforms, in the order in which they were found or described. tn_device_count
 * finds them first. The index of a device stays the same unless a module is registered or released.
 * NULL past the end. */
TN_API tn_status tn_device_count(size_t *out, tn_error *err);
TN_API tn_device *tn_device_at(size_t index);

/* Finds a device by name ("cuda:1"; "cuda" means "cuda:0"), UUID, bus address, or the name of its
 * section in a description file; "best" is the device of the current platform with the most memory.
 * Or by conditions, separated by commas, that the best device must meet:
 * "memory>=40g,capability>=9.0", "platform=cuda,multi_processor_count>100". A condition tests
 * platform, name, architecture (= or !=), capability, or a number of tn_device_properties by its
 * name (= != < <= > >=, bytes with k m g t); an unknown value meets no condition. "best" and
 * conditions skip devices that are only for planning, and lost devices: if all matching devices are
 * lost, fails with TN_DEVICE_LOST. TN_NOT_FOUND lists the devices present and the closest match;
 * TN_UNAVAILABLE gives the verdict on a platform that has no device; TN_INVALID_ARGUMENT gives the
 * position of an error in the conditions. */
TN_API tn_status tn_device_get(const char *name, tn_device **out, tn_error *err);

TN_API int32_t tn_platform_device_count(const tn_platform *platform);
TN_API tn_status tn_platform_device_get(const tn_platform *platform, int32_t index, tn_device **out,
                                        tn_error *err);

TN_API const tn_platform *tn_device_platform(const tn_device *device);
TN_API int32_t tn_device_index(const tn_device *device);
TN_API const char *tn_device_id(const tn_device *device);     /* "cuda:1"                        */
TN_API const char *tn_device_name(const tn_device *device);   /* "NVIDIA H200"; "" unknown       */
TN_API const char *tn_device_uuid(const tn_device *device);   /* "" unknown                      */
TN_API const char *tn_device_bus(const tn_device *device);    /* "" unknown                      */
TN_API const char *tn_device_origin(const tn_device *device); /* "found", or "described in FILE" */

/* 1 if the device is described and its platform cannot run it: plans can be made for it, but
 * running anything on it fails with TN_UNAVAILABLE. */
TN_API int32_t tn_device_plans_only(const tn_device *device);

/* Properties that do not change. Borrowed. They are read when the device is found, except for those
 * that take long to query, such as CUDA's capability and clocks: the first call queries them, in
 * the process that found the device. */
TN_API const tn_device_properties *tn_device_properties_get(const tn_device *device);

/* The current state of its memory; changes no statistics. Unknown values say why they are unknown.
 * Set out->struct_size first. */
TN_API tn_status tn_device_memory_get(const tn_device *device, tn_device_memory *out,
                                      tn_error *err);

/* Fails with TN_UNSUPPORTED if its platform has no capabilities or does not report one. */
TN_API tn_status tn_device_capability(const tn_device *device, tn_capability *out, tn_error *err);

/* has_capability: at least this one; is_capability: exactly this one; is_capability_family: same
 * major (90 matches any 9.x). All return 0 if the capability is unknown. Integers are converted as
 * by tn_capability_from_int. */
TN_API int32_t tn_device_has_capability(const tn_device *device, tn_capability least);
TN_API int32_t tn_device_has_capability_int(const tn_device *device, int32_t least);
TN_API int32_t tn_device_is_capability(const tn_device *device, tn_capability same);
TN_API int32_t tn_device_is_capability_int(const tn_device *device, int32_t same);
TN_API int32_t tn_device_is_capability_family(const tn_device *device, int32_t number);

/* The dtypes it computes with, the default first, terminated by 0; empty if unknown. */
TN_API const tn_dtype *tn_device_supported_dtypes(const tn_device *device);
TN_API tn_status tn_device_verify_dtype(const tn_device *device, tn_dtype dtype, tn_error *err);

/* 1 if it computes with bf16. With `including_emulation`, also 1 if it computes with f32, because
 * bf16 can be converted to f32 and rounded back. 0 if its dtypes are unknown. */
TN_API int32_t tn_device_supports_bf16(const tn_device *device, int32_t including_emulation);

/* 1 if Triton kernels could run on it, whether or not a compiler for them is installed; 0 if
 * unknown. */
TN_API int32_t tn_device_is_triton_capable(const tn_device *device);

/* Whether it computes with 8-bit floats, and its preferred one; 0 for none. Older AMD devices use
 * another encoding, whose dtype names end in "fnuz". */
TN_API int32_t tn_device_supports_fp8(const tn_device *device);
TN_API tn_dtype tn_device_fp8_dtype(const tn_device *device);
TN_API int32_t tn_device_is_fp8_fnuz(const tn_device *device);

/* How data is copied to another device of the same platform: TN_LINK_... Fails with TN_UNSUPPORTED
 * if unknown. */
TN_API tn_status tn_device_link(const tn_device *from, const tn_device *to, int32_t *out,
                                tn_error *err);

/* 1 if every pair of the platform's devices is connected by a dedicated link, or if there is one
 * device. */
TN_API tn_status tn_platform_is_fully_connected(const tn_platform *platform, int32_t *out,
                                                tn_error *err);

/* Its random number generator, which tn_seed_everything seeds. Device n of every platform has
 * subsequence n, so a program draws the same numbers on every platform. Borrowed; NULL only for a
 * NULL device. */
TN_API tn_generator *tn_device_generator(const tn_device *device);

/* 1 if the platform has a usable device. Never fails and initializes nothing. Tests may override
 * the answer with 0 or 1; -1 restores the real one. */
TN_API int32_t tn_platform_is_available(const tn_platform *platform);
TN_API tn_status tn_platform_availability_replace(const tn_platform *platform, int32_t answer,
                                                  tn_error *err);

/* Waits for all work queued on the device by any thread. NULL: the current device. */
TN_API tn_status tn_device_synchronize(const tn_device *device, tn_error *err);

/* A device that failed stays lost: every call that would use it fails with TN_DEVICE_LOST and the
 * first cause. tn_device_health returns the same; TN_OK while the device works. tn_device_reset
 * discards everything on the device, including memory, streams and events, which must not be used
 * again, and opens the device again. If two threads reset at the same time, one reset serves both.
 * TN_UNSUPPORTED if the platform cannot reset. */
TN_API tn_status tn_device_health(const tn_device *device, tn_error *err);
TN_API tn_status tn_device_reset(tn_device *device, tn_error *err);

/* The current device of the calling thread, one per platform. It is only a default for creating
 * objects; operators use the device of their tensors. All these calls treat indices the same way:
 * -1 means no device, changes nothing and is not an error. Any other index that the platform does
 * not have fails with TN_NOT_FOUND; a platform that is not ready fails with TN_UNAVAILABLE and its
 * verdict. A failed call changes nothing.
 *
 * `exchange` returns the previous index. Like `set`, it initializes the device, so it fails if the
 * device cannot be used (TN_DEVICE_LOST, ...). `maybe_exchange` leaves initialization to the first
 * use, so it cannot fail for that reason; guards use it to restore. If the vendor's API has its own
 * current device, `set` and `exchange` change that too. */
TN_API int32_t tn_device_current(const tn_platform *platform); /* 0 until set; -1 if no devices */
TN_API tn_status tn_device_set(const tn_platform *platform, int32_t index, tn_error *err);
TN_API tn_status tn_device_exchange(const tn_platform *platform, int32_t index,
                                    int32_t *out_previous, tn_error *err);
TN_API tn_status tn_device_maybe_exchange(const tn_platform *platform, int32_t index,
                                          int32_t *out_previous, tn_error *err);

/* 1 if it is initialized, so that its first use has no extra cost; 0 also if it cannot be used.
 * Initializes nothing. */
TN_API int32_t tn_device_is_initialized(const tn_device *device);

/* The device used where objects are created with a NULL device: the current device of the current
 * platform. */
TN_API tn_status tn_device_default(tn_device **out, tn_error *err);

/* A scope in which a device is current. Initialize with zeros. It belongs to the thread that
 * entered it; leaving it on another thread does nothing. Guards nest. Leaving always restores the
 * device that was current on entry, whatever happened inside. Entering twice fails with TN_BUSY.
 * NULL device: changes nothing. The vendor's own current context (a CUcontext) is restored too,
 * whoever had set it. Frozen. */
typedef struct tn_device_guard {
    const tn_platform *platform; /* NULL: not entered, or nothing to restore */
    int32_t previous;
    int32_t entered; /* 0: not entered; negative: the vendor's state was saved too */
    void *vendors;
} tn_device_guard;

TN_API tn_status tn_device_guard_enter(tn_device_guard *guard, tn_device *device, tn_error *err);
TN_API void tn_device_guard_leave(tn_device_guard *guard); /* accepts NULL, not entered */

/* Adds the devices of a description file (docs/descriptions.md): all of them, or none if the file
 * has any error; the message then has the file, the line and what was expected. */
TN_API tn_status tn_device_file_add(const char *path, tn_error *err);

TN_END_DECLS

#endif
