/* The module `cuda`: NVIDIA's GPUs through the driver's interface.
 *
 * Looking for devices initialises nothing where the kernel module's list or the management library serves: the
 * driver starts when a device is first used. Each device has its primary context, the one that the runtime library and with it
 * most programs use. Every call of the row makes it current and restores what the caller had, so that a
 * program's own contexts are never in the way.
 *
 * A fault of the device voids its whole context: the first one is kept, and every later call says it again.
 *
 * Thread-safety: Safe. Locks are held while something is made for the first time, never while something is
 * copied or waited for. */
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
    cuda_found found;      /* who it is; its numbers are read through cuda_describe */
    atomic_bool described; /* then its numbers are there, and do not change */
    int32_t index;
    cu_device handle; /* once the driver has started */

    mtx_t lock;                  /* of making what is below */
    _Atomic(cu_context) context; /* NULL until the first use */
    _Atomic(cu_stream) alloc_stream;
    _Atomic(cu_pool) pool; /* NULL where the driver has none */
    _Atomic int least,
        greatest;           /* priorities of streams: the numerically lower is the more urgent */
    _Atomic uint64_t peers; /* bits of devices whose memory it has been let into */

    _Atomic uint32_t life;                 /* goes up when it is reset */
    mtx_t kernels_lock;                    /* of compiling and loading */
    _Atomic(struct cuda_kernel *) kernels; /* that are loaded; compile/code.c */

    atomic_bool faulted;
    atomic_flag fault_guard; /* of the first fault */
    tn_error fault;
} cuda_device;

typedef struct cuda {
    const tn_host *host;
    const char *root; /* stands before the paths of the system's files; "" but in tests */
    cuda_driver driver;
    atomic_bool sought_nvml; /* then what is below, and what it says of devices, does not change */
    bool has_nvml;
    cuda_nvml nvml;
    int32_t driver_version; /* 13000 is CUDA 13.0 */
    int32_t count;
    mtx_t lock; /* of starting the driver, and of seeking the compiler */
    atomic_bool started;
    bool sought_compiler;
    void *compiler; /* cuda_compiler */
    cuda_device devices[CUDA_MOST];
} cuda;

/* discover.c */
tn_status cuda_probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err);
/* The same with the system's files below `root`, which stays the caller's and there. */
tn_status cuda_probe_at(const tn_host *host, const char *root, void **out_self,
                        int32_t *out_devices, tn_error *err);
/* Starts the driver, once, and finds its number of every device. */
tn_status cuda_start(cuda *self, tn_error *err);
/* TN_UNAVAILABLE for a device that a driver which has started does not show. */
tn_status cuda_find_handle(const cuda_device *device, tn_error *err);

/* describe.c */

/* A device with its numbers, which are asked for where they are not there yet: of the management library, or where
 * that one does not serve or the driver has started, of the driver, whose words a failure has. */
tn_status cuda_describe(cuda *self, int32_t index, const cuda_found **out_found, tn_error *err);
/* The management library, opened now where others served to count; NULL where it is not or does not serve. What
 * it knows of devices is in their `found` from then on. */
const cuda_nvml *cuda_management(cuda *self);
/* Opens it and lists what it has: an empty list where it is not there or does not serve; *out_code is its result. */
void cuda_open_management(cuda *self, cuda_listing *out, nvml_result *out_code);
/* Which device it is to the driver, and no more; and its numbers. */
void cuda_identify(const cuda_driver *driver, cu_device device, cuda_found *out);
void cuda_measure(const cuda_driver *driver, cu_device device, cuda_found *out);
/* Whether the driver's device is the one of a list. */
bool cuda_is_same(const cuda_found *described, const cuda_found *has);
/* The machine's number of a device that the driver numbers otherwise, and numbers that it lacks. A MIG instance has
 * the number of the device it is part of, whose memory and clocks are not its own. */
void cuda_join(const cuda_listing *list, cuda_device *device);

/* properties.c */
tn_status cuda_device_properties(void *any, int32_t index, tn_device_properties *out,
                                 tn_error *err);
/* The name of its architecture for compilers: "sm_90a". Of a device that is described. */
void cuda_architecture(const cuda_found *found, char *out, size_t size);
tn_status cuda_device_numbers(void *any, int32_t index, tn_device_properties *out, tn_error *err);
tn_status cuda_device_link(void *any, int32_t from, int32_t to, int32_t *out_link, tn_error *err);

/* context.c */

/* Where a call is: a device whose context is current until cuda_leave. */
typedef struct cuda_scope {
    cuda *self;
    cuda_device *device;
    cu_context before; /* current, or NULL */
    bool pushed;       /* that was another one */
    bool relaxed;      /* and `mode` is what the thread had */
    cu_capture_mode mode;
} cuda_scope;

/* Starts the driver and makes the device's context if need be, and makes it current. TN_DEVICE_LOST with
 * the first cause for a device that has faulted. */
tn_status cuda_enter(void *any, int32_t index, cuda_scope *out, tn_error *err);
void cuda_leave(const cuda_scope *scope);

/* Until the scope is left, calls that a capture of the program's forbids its thread, or the whole process, do it
 * no harm: for what concerns no stream, or none that is captured. */
void cuda_relax(cuda_scope *scope);

/* The status of a driver's result on the device of the scope; keeps a fault that stays. */
tn_status cuda_check(const cuda_scope *scope, cu_result code, const char *call, tn_error *err);

/* What the device has to say for itself: its fault, if it has one. Harms no capture. */
cu_result cuda_ask(const cuda_scope *scope);

/* The status of a library's call: a device that has failed is what the library fails for, and the driver knows the
 * cause. */
tn_status cuda_blame(const cuda_scope *scope, tn_status status, const char *call, tn_error *err);

/* As cuda_check, for a call that has to do with another device, too: a fault is kept if this one says that it has it. */
tn_status cuda_check_either(const cuda_scope *scope, cu_result code, const char *call,
                            tn_error *err);

/* As cuda_check, and the scope is left: for a call's last word. */
tn_status cuda_done(const cuda_scope *scope, cu_result code, const char *call, tn_error *err);

tn_status cuda_device_activate(void *any, int32_t index, tn_error *err);
tn_status cuda_device_enter(void *any, int32_t index, void **out_previous, tn_error *err);
void cuda_device_leave(void *any, void *previous);
int32_t cuda_device_is_initialized(void *any, int32_t index);
tn_status cuda_device_reset(void *any, int32_t index, tn_error *err);
tn_status cuda_device_synchronize(void *any, int32_t index, tn_error *err);

/* memory.c */

/* Makes what allocation needs; the context is current and the device's lock held. */
cu_result cuda_memory_open(cuda *self, cuda_device *device);
/* Lets `device` into the memory of `other`, as far as the two reach each other. */
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
