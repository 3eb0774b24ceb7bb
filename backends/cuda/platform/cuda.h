/* The module `cuda`: NVIDIA's GPUs through the driver API.
 *
 * Discovery does not initialise the driver if the kernel module's list or NVML (the management library) suffices:
 * the driver starts when a device is first used. Each device uses its primary context, which the runtime library
 * and therefore most programs use. Every call of the platform's table makes it current and restores the caller's
 * context, so a program's own contexts are never affected.
 *
 * A device fault invalidates the whole context: the first fault is kept, and every later call reports it again.
 *
 * Thread-safety: Safe. Locks are held while something is created for the first time, never during a copy or a
 * wait. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include "driver.h"
#include "nvml.h"
#include "tenon/module/library.h"
#include "tenon/module/platform.h"
#include "visible.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <threads.h>

typedef struct cuda_device {
    cuda_found found;      /* identity; numbers must be read through cuda_describe */
    atomic_bool described; /* if true, the numbers in `found` are valid and constant */
    int32_t index;
    cu_device handle; /* -1 until the driver has started */

    mtx_t lock;                  /* protects the creation of the fields below */
    _Atomic(cu_context) context; /* NULL until the first use */
    _Atomic(cu_stream) alloc_stream;
    _Atomic(cu_pool) pool;       /* NULL if the driver has no memory pools */
    _Atomic int least, greatest; /* stream priorities: a lower number is more urgent */
    _Atomic uint64_t peers;      /* bit mask of devices whose memory it has access to */

    _Atomic uint32_t life;                 /* epoch: incremented at each reset */
    mtx_t kernels_lock;                    /* protects compiling and loading */
    _Atomic(struct cuda_kernel *) kernels; /* loaded kernels; see compile/code.c */

    atomic_bool faulted;
    atomic_flag fault_guard; /* spin lock for `fault` */
    tn_error fault;
} cuda_device;

typedef struct cuda {
    const tn_host *host;
    const char *root; /* prefix of the paths of system files; "" except in tests */
    cuda_driver driver;
    atomic_bool sought_nvml; /* if true, the NVML fields here and in devices are constant */
    bool has_nvml;
    cuda_nvml nvml;
    int32_t driver_version; /* 13000 is CUDA 13.0 */
    int32_t count;
    mtx_t lock; /* protects starting the driver and searching for the compiler */
    atomic_bool started;
    bool sought_compiler;
    void *compiler; /* cuda_compiler */
    cuda_device devices[CUDA_MOST];
} cuda;

/* discover.c */
tn_status cuda_probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err);
/* Same as cuda_probe, with the system's files below `root`. The caller owns `root` and must keep it alive. */
tn_status cuda_probe_at(const tn_host *host, const char *root, void **out_self,
                        int32_t *out_devices, tn_error *err);
/* Starts the driver, once, and finds the driver's handle of every device. */
tn_status cuda_start(cuda *self, tn_error *err);
/* Fails with TN_UNAVAILABLE if the driver has started and does not show the device. */
tn_status cuda_find_handle(const cuda_device *device, tn_error *err);

/* describe.c */

/* Returns a device with its numbers. If they are not known yet, queries NVML or, if NVML does not work or the
 * driver has started, the driver. On failure `err` has the driver's message. */
tn_status cuda_describe(cuda *self, int32_t index, const cuda_found **out_found, tn_error *err);
/* Returns NVML, opening it now if discovery did not need it; NULL if it is absent or does not work. Also adds
 * what NVML knows about devices to their `found`. */
const cuda_nvml *cuda_management(cuda *self);
/* Opens NVML and lists its devices: an empty list if it is absent or does not work. *out_code is NVML's result. */
void cuda_open_management(cuda *self, cuda_listing *out, nvml_result *out_code);
/* cuda_identify reads only the identity of a device from the driver, cuda_measure reads its numbers. */
void cuda_identify(const cuda_driver *driver, cu_device device, cuda_found *out);
void cuda_measure(const cuda_driver *driver, cu_device device, cuda_found *out);
/* Returns whether the driver's device `has` is the listed device `described`. */
bool cuda_is_same(const cuda_found *described, const cuda_found *has);
/* Fills in from the list the machine-wide index of a device, which can differ from the driver's index, and missing
 * numbers. A MIG instance gets the index of its parent device, but not the parent's memory and clocks. */
void cuda_join(const cuda_listing *list, cuda_device *device);

/* properties.c */
tn_status cuda_device_properties(void *any, int32_t index, tn_device_properties *out,
                                 tn_error *err);
/* Writes the architecture's name as compilers spell it: "sm_90a". The device must be described. */
void cuda_architecture(const cuda_found *found, char *out, size_t size);
tn_status cuda_device_numbers(void *any, int32_t index, tn_device_properties *out, tn_error *err);
tn_status cuda_device_link(void *any, int32_t from, int32_t to, int32_t *out_link, tn_error *err);

/* context.c */

/* Scope of a call: the device's context is current until cuda_leave. */
typedef struct cuda_scope {
    cuda *self;
    cuda_device *device;
    cu_context before; /* the previous current context, or NULL */
    bool pushed;       /* `before` was a different context */
    bool relaxed;      /* the thread's capture mode was changed; `mode` is the old one */
    cu_capture_mode mode;
} cuda_scope;

/* Starts the driver and creates the device's context if necessary, and makes it current. Fails with
 * TN_DEVICE_LOST and the first cause if the device has faulted. */
tn_status cuda_enter(void *any, int32_t index, cuda_scope *out, tn_error *err);
void cuda_leave(const cuda_scope *scope);

/* Until the scope is left, relaxes the thread's capture mode, so that calls which a capture forbids to its
 * thread or to the whole process do not invalidate a capture of the program. For calls that use no stream, or no
 * captured one. */
void cuda_relax(cuda_scope *scope);

/* Converts a driver result on the scope's device to a status; records a sticky fault. */
tn_status cuda_check(const cuda_scope *scope, cu_result code, const char *call, tn_error *err);

/* Returns `status`, that of a library call. If the call failed because the device has faulted, records and reports
 * the driver's fault instead. */
tn_status cuda_blame(const cuda_scope *scope, tn_status status, const char *call, tn_error *err);

/* Same as cuda_check, for a call that also involves another device: records a fault only if this device confirms
 * it. */
tn_status cuda_check_either(const cuda_scope *scope, cu_result code, const char *call,
                            tn_error *err);

/* Same as cuda_check, then leaves the scope: for the last driver call. */
tn_status cuda_done(const cuda_scope *scope, cu_result code, const char *call, tn_error *err);

tn_status cuda_device_activate(void *any, int32_t index, tn_error *err);
tn_status cuda_device_enter(void *any, int32_t index, void **out_previous, tn_error *err);
void cuda_device_leave(void *any, void *previous);
int32_t cuda_device_is_initialized(void *any, int32_t index);
tn_status cuda_device_reset(void *any, int32_t index, tn_error *err);
tn_status cuda_device_synchronize(void *any, int32_t index, tn_error *err);

/* memory.c */

/* Gives the scope's device access to the memory of `other`, if the hardware supports it. */
void cuda_memory_share(const cuda_scope *scope, cuda_device *other);
tn_status cuda_memory_alloc(void *any, int32_t index, uint64_t bytes, void **out, tn_error *err);
void cuda_memory_free(void *any, int32_t index, void *memory);
void cuda_memory_trim(void *any, int32_t index);
tn_status cuda_memory_alloc_on(void *any, int32_t index, void *stream, uint64_t bytes, void **out,
                               tn_error *err);
tn_status cuda_memory_free_on(void *any, int32_t index, void *stream, void *memory, tn_error *err);
tn_status cuda_capture_alloc(void *any, int32_t index, void *stream, uint64_t bytes, void **out,
                             tn_error *err);
void cuda_capture_free(void *any, int32_t index, void *stream, void *memory);
tn_status cuda_device_memory(void *any, int32_t index, tn_device_memory *out, tn_error *err);
tn_status cuda_host_alloc(void *any, int32_t index, uint64_t bytes, void **out, tn_error *err);
void cuda_host_free(void *any, int32_t index, void *memory);

/* copy.c */
tn_status cuda_copy(void *any, const tn_copy_job *job, tn_error *err);
tn_status cuda_fill(void *any, const tn_fill_job *job, tn_error *err);

/* stream.c */
tn_status cuda_stream_create(void *any, int32_t index, const tn_stream_spec *spec, void **out,
                             tn_error *err);
void cuda_stream_destroy(void *any, int32_t index, void *stream);
tn_status cuda_stream_query(void *any, int32_t index, void *stream, int32_t *out_done,
                            tn_error *err);
tn_status cuda_stream_synchronize(void *any, int32_t index, void *stream, tn_error *err);
tn_status cuda_stream_wait(void *any, int32_t index, void *stream, void *event, tn_error *err);
int32_t cuda_stream_is_captured(void *any, int32_t index, void *stream);

/* graph.c */
tn_status cuda_graph_begin(void *any, int32_t index, void *stream, tn_error *err);
tn_status cuda_graph_end(void *any, int32_t index, void *stream, void **out_graph, tn_error *err);
tn_status cuda_graph_run(void *any, int32_t index, void *graph, void *stream, tn_error *err);
void cuda_graph_destroy(void *any, int32_t index, void *graph);

/* kernels/random.c */
tn_status cuda_random(void *any, const tn_random_job *job, tn_error *err);

/* event.c */
tn_status cuda_event_create(void *any, int32_t index, const tn_event_spec *spec, void **out,
                            tn_error *err);
void cuda_event_destroy(void *any, int32_t index, void *event);
tn_status cuda_event_record(void *any, int32_t index, void *event, void *stream, tn_error *err);
tn_status cuda_event_query(void *any, int32_t index, void *event, int32_t *out_done, tn_error *err);
tn_status cuda_event_synchronize(void *any, int32_t index, void *event, tn_error *err);
tn_status cuda_event_elapsed(void *any, int32_t index, void *start, void *stop, double *out_ms,
                             tn_error *err);
tn_status cuda_event_export(void *any, int32_t index, void *event, tn_event_handle *out,
                            tn_error *err);
tn_status cuda_event_import(void *any, int32_t index, const tn_event_handle *handle, void **out,
                            tn_error *err);

extern const tn_library_row cuda_driver_row, cuda_nvml_row;

#endif
