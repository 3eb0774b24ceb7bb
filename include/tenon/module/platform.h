/* A platform: a kind of hardware with its driver, as a module offers it.
 * Thread-safety: rows are constant; the host may call a row's functions from any thread, one probe
 * at a time. */
#ifndef TENON_MODULE_PLATFORM_H
#define TENON_MODULE_PLATFORM_H

#include "device.h"
#include "machine.h"
#include "module.h"

TN_BEGIN_DECLS

/* Kinds of hardware. Other platforms are TN_PLATFORM_OOT: out of tree. */
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

/* Copies `rows` rows of `bytes` bytes. A negative device means host memory. Source and destination
 * do not overlap. */
typedef struct tn_copy_job {
    size_t struct_size;
    void *to;
    const void *from;
    uint64_t bytes;
    int32_t to_device;
    int32_t from_device;
    void *stream;        /* NULL: the default stream                                  */
    uint64_t rows;       /* 1 or more                                                 */
    uint64_t to_pitch;   /* bytes between row starts                                  */
    uint64_t from_pitch; /* the same; both at least `bytes` if there are several rows */
} tn_copy_job;
TN_ENDS_WITH(tn_copy_job, from_pitch);

/* Fills `bytes` bytes of device memory with a repeated pattern of 1, 2, 4 or 8 bytes; `bytes` is a
 * multiple of `pattern_bytes`. */
typedef struct tn_fill_job {
    size_t struct_size;
    void *to;
    uint64_t bytes;
    uint64_t pattern; /* the low pattern_bytes bytes, in host byte order */
    uint32_t pattern_bytes;
    int32_t device;
    void *stream; /* NULL: the default stream */
} tn_fill_job;
TN_ENDS_WITH(tn_fill_job, stream);

/* Writes `elements` random numbers of the generator with this seed and subsequence, from block
 * `block` on, bit for bit as tn_random_fill_uniform and tn_random_fill_normal (tenon/random.h)
 * define them. */
enum { TN_RANDOM_UNIFORM = 1, TN_RANDOM_NORMAL };
typedef struct tn_random_job {
    size_t struct_size;
    void *to; /* aligned to an element */
    int64_t elements;
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    tn_dtype dtype;
    int32_t kind; /* TN_RANDOM_... */
    int32_t device;
    int32_t reserved;
    void *stream; /* NULL: the default stream */
} tn_random_job;
TN_ENDS_WITH(tn_random_job, stream);

/* Priority of a stream; the platform maps it to the levels that it has. */
enum { TN_PRIORITY_LOW = -1, TN_PRIORITY_DEFAULT = 0, TN_PRIORITY_HIGH = 1 };

typedef struct tn_stream_spec {
    size_t struct_size;
    int32_t priority; /* TN_PRIORITY_... */
    int32_t reserved; /* 0 */
} tn_stream_spec;
TN_ENDS_WITH(tn_stream_spec, reserved);

/* Options of an event. */
#define TN_EVENT_TIMING       UINT32_C(1) /* can measure time                          */
#define TN_EVENT_BLOCKING     UINT32_C(2) /* waiting threads sleep instead of spinning */
#define TN_EVENT_INTERPROCESS UINT32_C(4) /* another process can open it               */
#define TN_EVENT_FLAGS        UINT32_C(7)

typedef struct tn_event_spec {
    size_t struct_size;
    uint32_t flags;   /* TN_EVENT_... */
    int32_t reserved; /* 0 */
} tn_event_spec;
TN_ENDS_WITH(tn_event_spec, reserved);

/* A handle by which another process opens an event. Frozen. */
typedef struct tn_event_handle {
    unsigned char bytes[64];
} tn_event_handle;
TN_STATIC_ASSERT(sizeof(tn_event_handle) == 64, "tn_event_handle is frozen at 64 bytes");

/* Where to look for evidence of a platform. The core looks itself, without opening a library or
 * waking a device, and `tenon devices --explain` shows the result. */
enum {
    TN_LOOK_FILE = 1, /* a path; a final "*" matches any rest */
    TN_LOOK_PCI,      /* a PCI device, in hexadecimal: "10de"; "10de:03" with a class prefix;
                         "1ae0/0063" for one device; several separated by "|" */
    TN_LOOK_LIBRARY,  /* a file the loader would find, named as for library_bind */
    TN_LOOK_SYSTEM,   /* "darwin/arm64": operating system and architecture       */
    TN_LOOK_COUNT
};

/* What a piece of evidence proves if it is found. */
enum { TN_SHOWS_HARDWARE = 1, TN_SHOWS_DRIVER, TN_SHOWS_LIBRARY, TN_SHOWS_COUNT };

typedef struct tn_evidence_row {
    size_t struct_size;
    const char *what; /* "/dev/nvidiactl", "10de:03", "libcuda.so.1" */
    int32_t look;     /* TN_LOOK_...                                 */
    int32_t shows;    /* TN_SHOWS_...                                */
} tn_evidence_row;
TN_ENDS_WITH(tn_evidence_row, shows);

/* One key of a described device: a device from a description file, not found on the machine. */
typedef struct tn_description_entry {
    size_t struct_size;
    const char *key;
    const char *value;
    const char *origin; /* "file:line", for messages */
} tn_description_entry;
TN_ENDS_WITH(tn_description_entry, origin);

typedef struct tn_description {
    size_t struct_size;
    const char *name;                       /* name of its section; "" if it has none         */
    const char *origin;                     /* "file:line", for messages                      */
    const tn_device_properties *properties; /* the ones in the description                    */
    const tn_description_entry *entries;    /* keys that are not properties, for the platform */
    size_t entry_count;
} tn_description;
TN_ENDS_WITH(tn_description, entry_count);

/* tn_platform_row.flags */
#define TN_PLATFORM_STAND_IN     UINT32_C(1) /* never current unless requested by name       */
#define TN_PLATFORM_ASYNC_OUTPUT UINT32_C(2) /* results can be fetched while later work runs */
#define TN_PLATFORM_ASYNC_OUTPUT_EAGER \
    UINT32_C(4) /* the same without a graph or compiled program */
#define TN_PLATFORM_FORK_SAFE \
    UINT32_C(8) /* a forked child can keep using it, because it shares no driver, thread or
                   connection with its parent; without this, every use in a child is refused */
#define TN_PLATFORM_FLAGS UINT32_C(15)

typedef struct tn_platform_row {
    size_t struct_size;
    const char *name;   /* "acme": the word before ':' in "acme:0"; not "best" */
    int32_t kind;       /* TN_PLATFORM_OOT, ...                                */
    uint32_t flags;     /* TN_PLATFORM_STAND_IN | ...                          */
    const char *remedy; /* remedy if the probe fails and sets none with host->remedy_tell:
                           "install ..."; or NULL */

    /* Looks for the hardware; opens the vendor library (host->library_bind) here and not before. If
     * there is no hardware, fails with TN_UNAVAILABLE and the reason. Opening a module, its entry
     * and all its probes together have a time limit of two seconds. Must have no lasting effect
     * except *out_self, which is passed to later calls. */
    tn_status (*probe)(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err);

    tn_status (*memory_alloc)(void *self, int32_t device, uint64_t bytes, void **out,
                              tn_error *err);
    void (*memory_free)(void *self, int32_t device, void *memory);

    /* May fail with TN_UNSUPPORTED between two devices: the host then copies through its own
     * memory. If a copy between two devices fails with TN_DEVICE_LOST, the host calls device_memory
     * of both to find out which: it must fail with TN_DEVICE_LOST for a lost device. If neither
     * does, no device counts as lost yet. */
    tn_status (*copy)(void *self, const tn_copy_job *job, tn_error *err);

    /* Names. NULL: the default of the kind (docs/modules.md lists them); for TN_PLATFORM_OOT the
     * row's name, and "PrivateUse1" as dispatch key. */
    const char *device_name;         /* as FastVideo spells it: "cuda", but "CPU"                */
    const char *device_type;         /* a framework's device string: ROCm's is "cuda"           */
    const char *dispatch_key;        /* under which operators are registered: "CUDA"            */
    const char *visible_variable;    /* that hides devices: "CUDA_VISIBLE_DEVICES"; "" for none */
    const char *async_output_reason; /* reason for its async output flags                       */

    /* Lists that end with NULL; NULL or empty: everything is supported. */
    const char *const *quantizations;
    const char *const *model_archs;

    /* Ends with NULL. NULL: the default of the kind. */
    const tn_evidence_row *const *evidence;

    /* Each may be NULL: then its information is unknown and reported so. Called only after a
     * successful probe, with a device below its count, from any thread. out->struct_size is set and
     * the rest is zeroed; strings it writes must be terminated.
     *
     * device_properties is called once for each device, right after the probe and within its two
     * seconds, on the thread that loads. Name, UUID and bus address must be set here; other
     * properties that take long to query can be left to device_numbers. Invalid values (a negative
     * number, an unknown bit of `known` or dtype) are treated as unknown; `tenon devices --explain`
     * shows them, and a failure. */
    tn_status (*device_properties)(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err);
    tn_status (*device_memory)(void *self, int32_t device, tn_device_memory *out, tn_error *err);
    tn_status (*device_link)(void *self, int32_t from, int32_t to, int32_t *out_link,
                             tn_error *err); /* TN_LINK_... */

    /* Reports the topology of the machine; only for platforms of kind CPU. TN_UNAVAILABLE: the host
     * reads the system instead. */
    tn_status (*topology)(void *self, const tn_topology_sink *sink, tn_error *err);

    /* Adds a described device and returns its index, which no other device may have. If out_device
     * is NULL, it only checks: adding a description that passes must not fail, except if out of
     * memory. An error message must begin with the origin of the entry or of the description. NULL:
     * described devices of this platform are for planning only. */
    tn_status (*describe)(void *self, const tn_description *description, int32_t *out_device,
                          tn_error *err);

    /* Streams: all six functions or none. Without them every stream is the calling thread: all work
     * is complete when a call returns. A stream argument, here, in jobs and in tn_run, is what
     * stream_create returned, or NULL for the default stream of the device; its value is the raw
     * handle that programs see. Work on the default stream runs in order, as on any other stream:
     * NULL never means that a call may run at once on the calling thread. Queueing must not wait
     * for queued work. Any of these may return an error of earlier work; TN_DEVICE_LOST is
     * permanent and names the first cause. */
    tn_status (*stream_create)(void *self, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err);
    void (*stream_destroy)(void *self, int32_t device, void *stream); /* its work completes */
    tn_status (*stream_query)(void *self, int32_t device, void *stream, int32_t *out_done,
                              tn_error *err);
    tn_status (*stream_synchronize)(void *self, int32_t device, void *stream, tn_error *err);
    tn_status (*stream_wait)(void *self, int32_t device, void *stream, void *event, tn_error *err);
    tn_status (*device_synchronize)(void *self, int32_t device, tn_error *err);

    /* Events: all six functions or none; only together with streams. */
    tn_status (*event_create)(void *self, int32_t device, const tn_event_spec *spec, void **out,
                              tn_error *err);
    /* May be called before queued records and waits have run; they must still run. */
    void (*event_destroy)(void *self, int32_t device, void *event);
    tn_status (*event_record)(void *self, int32_t device, void *event, void *stream, tn_error *err);
    tn_status (*event_query)(void *self, int32_t device, void *event, int32_t *out_done,
                             tn_error *err);
    tn_status (*event_synchronize)(void *self, int32_t device, void *event, tn_error *err);
    tn_status (*event_elapsed)(void *self, int32_t device, void *start, void *stop, double *out_ms,
                               tn_error *err);

    /* Each may be NULL. event_export and event_import: without them TN_EVENT_INTERPROCESS is
     * refused. fill: without it the host fills and copies. host_alloc and host_free (pinned host
     * memory): without them ordinary memory is used. */
    tn_status (*event_export)(void *self, int32_t device, void *event, tn_event_handle *out,
                              tn_error *err);
    tn_status (*event_import)(void *self, int32_t device, const tn_event_handle *handle, void **out,
                              tn_error *err);
    tn_status (*fill)(void *self, const tn_fill_job *job, tn_error *err);
    tn_status (*host_alloc)(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err);
    void (*host_free)(void *self, int32_t device, void *memory);

    /* device_activate makes the device current for the calling thread in the vendor's API, so that
     * code that calls the vendor directly uses it; NULL if there is no such concept.
     * device_is_initialized returns 1 if the device is initialized; NULL: always. */
    tn_status (*device_activate)(void *self, int32_t device, tn_error *err);
    int32_t (*device_is_initialized)(void *self, int32_t device);

    /* After a loss: discards everything on the device and opens it again. NULL: not supported. */
    tn_status (*device_reset)(void *self, int32_t device, tn_error *err);

    /* Graphs: all four functions or none; only with streams. Without them the host records calls
     * and repeats them. After graph_begin, work queued on the stream is recorded and does not run,
     * until graph_end. It returns a graph, which graph_run can run any number of times, on any
     * stream of the device, one run after the other; if out_graph is NULL, the recording is
     * discarded. While recording, memory is allocated and kernels are planned as usual.
     * graph_destroy may be called during a run, which must still complete. */
    tn_status (*graph_begin)(void *self, int32_t device, void *stream, tn_error *err);
    tn_status (*graph_end)(void *self, int32_t device, void *stream, void **out_graph,
                           tn_error *err);
    tn_status (*graph_run)(void *self, int32_t device, void *graph, void *stream, tn_error *err);
    void (*graph_destroy)(void *self, int32_t device, void *graph);

    /* Generates random numbers on the device, in stream order. If NULL, or on TN_UNSUPPORTED or
     * TN_UNAVAILABLE, the host generates and copies them. */
    tn_status (*random)(void *self, const tn_random_job *job, tn_error *err);

    /* Returns to the system the freed memory that the platform itself keeps. NULL: it keeps
     * none. */
    void (*memory_trim)(void *self, int32_t device);

    /* Reads the properties that take long to query and that device_properties left unknown:
     * numbers, the capability, the architecture, dtypes. Called when they are first needed, for
     * example by an operator that is to run there, from any thread, and again only after a failure;
     * `out` has the properties known so far. NULL: there are no more. */
    tn_status (*device_numbers)(void *self, int32_t device, tn_device_properties *out,
                                tn_error *err);

    /* Captures: all three functions or none; only with streams. In a capture, the program itself
     * uses the vendor's API to record the work queued on a stream whose handle it knows, for its
     * own graph. stream_is_captured returns whether that is so now, without disturbing the capture.
     * capture_alloc and capture_free are stream-ordered memory of the captured graph: each of its
     * runs has the memory between the two calls. During a capture, nothing on that stream is waited
     * for or queried, and calls for other streams or for none must not disturb the capture. */
    int32_t (*stream_is_captured)(void *self, int32_t device, void *stream);
    tn_status (*capture_alloc)(void *self, int32_t device, void *stream, uint64_t bytes, void **out,
                               tn_error *err);
    void (*capture_free)(void *self, int32_t device, void *stream, void *memory);

    /* For guards: save and restore the vendor's own current device; both or neither. device_enter
     * does what device_activate does and returns what was current on this thread before, whoever
     * had set it; device_leave makes that current again. NULL: guards activate the device that was
     * current according to Tenon. */
    tn_status (*device_enter)(void *self, int32_t device, void **out_previous, tn_error *err);
    void (*device_leave)(void *self, void *previous);

    /* Stream-ordered memory: both functions or neither; only with streams. Work queued on the
     * stream after the allocation and before the free may use the memory. Neither waits for queued
     * work, except memory_alloc_on if there is no memory otherwise. Memory of memory_alloc_on and
     * of memory_alloc may be freed by either free function, on any stream. The stream is never one
     * that is being recorded or captured. NULL: memory_alloc is used, and the host waits for the
     * stream before memory_free. */
    tn_status (*memory_alloc_on)(void *self, int32_t device, void *stream, uint64_t bytes,
                                 void **out, tn_error *err);
    tn_status (*memory_free_on)(void *self, int32_t device, void *stream, void *memory,
                                tn_error *err);
} tn_platform_row;
TN_ENDS_WITH(tn_platform_row, memory_free_on);

TN_END_DECLS

#endif
