/* A platform: a kind of hardware with its driver, as a module offers it.
 * Thread-safety: rows are constant; the host may call a row's functions from any thread, one probe
 * at a time. */
#ifndef TENON_MODULE_PLATFORM_H
#define TENON_MODULE_PLATFORM_H

#include "module.h"

TN_BEGIN_DECLS

/* What kind of hardware. Anyone's own is TN_PLATFORM_OOT: out of tree. */
enum {
    TN_PLATFORM_UNSPECIFIED = 0,
    TN_PLATFORM_CPU,
    TN_PLATFORM_CUDA,
    TN_PLATFORM_ROCM,
    TN_PLATFORM_TPU,
    TN_PLATFORM_MPS,
    TN_PLATFORM_XPU,
    TN_PLATFORM_NPU,
    TN_PLATFORM_OPENCL,
    TN_PLATFORM_OOT,
    TN_PLATFORM_KIND_COUNT
};

/* One copy of `bytes` bytes. A negative device is the host's memory. */
typedef struct tn_copy_job {
    size_t struct_size;
    void *to;
    const void *from;
    uint64_t bytes;
    int32_t to_device;
    int32_t from_device;
    void *stream; /* NULL: in order, on the caller's thread */
} tn_copy_job;
TN_ENDS_WITH(tn_copy_job, stream);

typedef struct tn_platform_row {
    size_t struct_size;
    const char *name;   /* "acme": the word before ':' in "acme:0"                          */
    int32_t kind;       /* TN_PLATFORM_OOT, ...                                             */
    int32_t reserved;   /* 0                                                                */
    const char *remedy; /* what helps when the probe fails: "install ..."; or NULL         */

    /* Looks for the hardware: opens the vendor's library (host->library_bind) here and not before.
     * Without hardware it returns TN_UNAVAILABLE and says why; opening a module, its entry and all
     * its probes together have two seconds. Has no effect that outlives it but *out_self, which
     * later calls get back. */
    tn_status (*probe)(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err);

    tn_status (*memory_alloc)(void *self, int32_t device, uint64_t bytes, void **out,
                              tn_error *err);
    void (*memory_free)(void *self, int32_t device, void *memory);
    tn_status (*copy)(void *self, const tn_copy_job *job, tn_error *err);
} tn_platform_row;
TN_ENDS_WITH(tn_platform_row, copy);

TN_END_DECLS

#endif
