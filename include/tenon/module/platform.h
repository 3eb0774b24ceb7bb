/* A platform: a kind of hardware with its driver, as a module offers it.
 * Thread-safety: rows are constant; the host may call a row's functions from any thread, one probe
 * at a time. */
#ifndef TENON_MODULE_PLATFORM_H
#define TENON_MODULE_PLATFORM_H

#include "device.h"
#include "machine.h"
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

/* Where a platform leaves traces. The core looks for them itself, without opening a library or
 * waking a device, and `tenon devices --explain` shows what it saw. */
enum {
    TN_LOOK_FILE = 1, /* a path; one that ends in "*" stands for whatever begins so          */
    TN_LOOK_PCI,      /* a device on the bus, in hexadecimal: "10de", "10de:03" for a class that
                         begins so, "1ae0/0063" for one device; several separated by "|"      */
    TN_LOOK_LIBRARY,  /* a file the loader would find, named as for library_bind             */
    TN_LOOK_SYSTEM,   /* "darwin/arm64": operating system and architecture                   */
    TN_LOOK_COUNT
};

/* What a trace, when it is there, shows to be there. */
enum { TN_SHOWS_HARDWARE = 1, TN_SHOWS_DRIVER, TN_SHOWS_LIBRARY, TN_SHOWS_COUNT };

typedef struct tn_evidence_row {
    size_t struct_size;
    const char *what; /* "/dev/nvidiactl", "10de:03", "libcuda.so.1" */
    int32_t look;     /* TN_LOOK_...                                 */
    int32_t shows;    /* TN_SHOWS_...                                */
} tn_evidence_row;
TN_ENDS_WITH(tn_evidence_row, shows);

/* A device that is described, not found. */
typedef struct tn_description_entry {
    const char *key;
    const char *value;
} tn_description_entry;

typedef struct tn_description {
    size_t struct_size;
    const char *name;                       /* of its section; "" when it has none          */
    const char *origin;                     /* "file:line", for messages                     */
    const tn_device_properties *properties; /* as far as it says                             */
    const tn_description_entry *entries;    /* keys that are no properties: the platform's own */
    size_t entry_count;
} tn_description;
TN_ENDS_WITH(tn_description, entry_count);

/* tn_platform_row.flags */
#define TN_PLATFORM_STAND_IN     UINT32_C(1) /* never current unless it is asked for by name   */
#define TN_PLATFORM_ASYNC_OUTPUT UINT32_C(2) /* results can be fetched while later work runs   */
#define TN_PLATFORM_ASYNC_OUTPUT_EAGER \
    UINT32_C(4) /* and so without a graph or compiled program     */
#define TN_PLATFORM_FLAGS UINT32_C(7)

typedef struct tn_platform_row {
    size_t struct_size;
    const char *name;   /* "acme": the word before ':' in "acme:0"                          */
    int32_t kind;       /* TN_PLATFORM_OOT, ...                                             */
    uint32_t flags;     /* TN_PLATFORM_STAND_IN | ...                                       */
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

    /* Words. NULL stands for what the kind has: docs/modules.md lists them; for TN_PLATFORM_OOT
     * the row's name, and "PrivateUse1" as dispatch key. */
    const char *device_name;         /* for people: "CUDA"                                     */
    const char *device_type;         /* a framework's device string: ROCm's is "cuda"          */
    const char *dispatch_key;        /* under which operators are registered: "CUDA"           */
    const char *visible_variable;    /* that hides devices: "CUDA_VISIBLE_DEVICES"; "" for none */
    const char *async_output_reason; /* why its flags say what they say about async output   */

    /* NULL-ended lists; NULL or empty: everything is supported. */
    const char *const *quantizations;
    const char *const *model_archs;

    /* NULL-ended; NULL for what the kind has. */
    const tn_evidence_row *const *evidence;

    /* Each may be NULL: then what it would tell is unknown, and says so. Called after a probe that
     * succeeded, with a device below its count, from any thread. out->struct_size is set and the
     * rest zeroed; texts it writes are ended. */
    tn_status (*device_properties)(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err);
    tn_status (*device_memory)(void *self, int32_t device, tn_device_memory *out, tn_error *err);
    tn_status (*device_link)(void *self, int32_t from, int32_t to, int32_t *out_link,
                             tn_error *err); /* TN_LINK_... */

    /* Tells how the machine is built; of platforms of the kind CPU only. TN_UNAVAILABLE: the host
     * reads what the system says instead. */
    tn_status (*topology)(void *self, const tn_topology_sink *sink, tn_error *err);

    /* Adds a device that is described; it gets the next number. NULL: a description of this
     * platform's devices serves for planning only. */
    tn_status (*describe)(void *self, const tn_description *description, int32_t *out_device,
                          tn_error *err);
} tn_platform_row;
TN_ENDS_WITH(tn_platform_row, describe);

TN_END_DECLS

#endif
