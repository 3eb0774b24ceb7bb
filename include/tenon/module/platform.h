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

/* One copy of `rows` rows of `bytes` bytes. A negative device is the host's memory. Memory of the two
 * sides does not overlap. */
typedef struct tn_copy_job {
    size_t struct_size;
    void *to;
    const void *from;
    uint64_t bytes;
    int32_t to_device;
    int32_t from_device;
    void *stream;        /* NULL: the default stream */
    uint64_t rows;       /* 1 or more                                            */
    uint64_t to_pitch;   /* bytes from the beginning of a row to that of the next */
    uint64_t from_pitch; /* one; at least `bytes` when there is more than one     */
} tn_copy_job;
TN_ENDS_WITH(tn_copy_job, from_pitch);

/* Sets `bytes` bytes of a device's memory to a pattern of 1, 2, 4 or 8 bytes, over and over; `bytes`
 * is a multiple of `pattern_bytes`. */
typedef struct tn_fill_job {
    size_t struct_size;
    void *to;
    uint64_t bytes;
    uint64_t pattern; /* its lowest bytes, in the host's order */
    uint32_t pattern_bytes;
    int32_t device;
    void *stream; /* NULL: the default stream */
} tn_fill_job;
TN_ENDS_WITH(tn_fill_job, stream);

/* Writes `elements` random numbers of the generator whose seed and subsequence these are, from block
 * `block` on, bit for bit as tn_random_fill_uniform and tn_random_fill_normal (tenon/random.h) define
 * them. */
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

/* How urgent a stream's work is; the platform has as many degrees as it has. */
enum { TN_PRIORITY_LOW = -1, TN_PRIORITY_DEFAULT = 0, TN_PRIORITY_HIGH = 1 };

typedef struct tn_stream_spec {
    size_t struct_size;
    int32_t priority; /* TN_PRIORITY_... */
    int32_t reserved; /* 0 */
} tn_stream_spec;
TN_ENDS_WITH(tn_stream_spec, reserved);

/* What an event is for. */
#define TN_EVENT_TIMING       UINT32_C(1) /* it can be a point in time              */
#define TN_EVENT_BLOCKING     UINT32_C(2) /* who waits sleeps instead of spinning   */
#define TN_EVENT_INTERPROCESS UINT32_C(4) /* another process can open it            */
#define TN_EVENT_FLAGS        UINT32_C(7)

typedef struct tn_event_spec {
    size_t struct_size;
    uint32_t flags;   /* TN_EVENT_... */
    int32_t reserved; /* 0 */
} tn_event_spec;
TN_ENDS_WITH(tn_event_spec, reserved);

/* What another process opens an event by. Frozen. */
typedef struct tn_event_handle {
    unsigned char bytes[64];
} tn_event_handle;
TN_STATIC_ASSERT(sizeof(tn_event_handle) == 64, "tn_event_handle is frozen at 64 bytes");

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
    size_t struct_size;
    const char *key;
    const char *value;
    const char *origin; /* "file:line", for messages */
} tn_description_entry;
TN_ENDS_WITH(tn_description_entry, origin);

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
#define TN_PLATFORM_FORK_SAFE \
    UINT32_C(8) /* a forked child can go on using it, as it shares no driver, thread or
                   connection with its parent; without this every use there is refused */
#define TN_PLATFORM_FLAGS UINT32_C(15)

typedef struct tn_platform_row {
    size_t struct_size;
    const char *name;   /* "acme": the word before ':' in "acme:0"; not "best"              */
    int32_t kind;       /* TN_PLATFORM_OOT, ...                                             */
    uint32_t flags;     /* TN_PLATFORM_STAND_IN | ...                                       */
    const char *remedy; /* what helps when the probe fails and tells nothing better by
                           host->remedy_tell: "install ..."; or NULL                        */

    /* Looks for the hardware: opens the vendor's library (host->library_bind) here and not before.
     * Without hardware it returns TN_UNAVAILABLE and says why; opening a module, its entry and all
     * its probes together have two seconds. Has no effect that outlives it but *out_self, which
     * later calls get back. */
    tn_status (*probe)(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err);

    tn_status (*memory_alloc)(void *self, int32_t device, uint64_t bytes, void **out,
                              tn_error *err);
    void (*memory_free)(void *self, int32_t device, void *memory);
    /* Between two devices it may give TN_UNSUPPORTED: then the host copies through its own memory. */

    /* TN_UNSUPPORTED between two devices: the host copies through its own memory. When a copy between
     * two gives TN_DEVICE_LOST, device_memory of both is asked which one it is: it gives
     * TN_DEVICE_LOST for a device that is lost. When neither does, none counts as lost yet. */
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
     * rest zeroed; texts it writes are ended.
     *
     * device_properties is asked once for each device, right after the probe and within its two
     * seconds, by the thread that loads. Name, UUID and bus address are told now or never, the rest
     * by device_numbers where it takes long. What cannot be (a negative number, a bit of `known` or a
     * dtype that does not exist) is taken as unknown; `tenon devices --explain` shows that, and a
     * failure. */
    tn_status (*device_properties)(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err);
    tn_status (*device_memory)(void *self, int32_t device, tn_device_memory *out, tn_error *err);
    tn_status (*device_link)(void *self, int32_t from, int32_t to, int32_t *out_link,
                             tn_error *err); /* TN_LINK_... */

    /* Tells how the machine is built; of platforms of the kind CPU only. TN_UNAVAILABLE: the host
     * reads what the system says instead. */
    tn_status (*topology)(void *self, const tn_topology_sink *sink, tn_error *err);

    /* Adds a device that is described and gives its number, which no other device has. With a NULL
     * out_device it only checks: a description that passes is added without fail but for want of
     * memory. A refusal begins with the place: the entry's origin, or the description's. NULL: a
     * description of this platform's devices serves for planning only. */
    tn_status (*describe)(void *self, const tn_description *description, int32_t *out_device,
                          tn_error *err);

    /* Streams, all six or none. Without them every stream is the calling thread: everything is
     * done when a call returns. Wherever a stream is passed, here, in jobs and in tn_run, it is
     * what stream_create gave, or NULL for the default stream of the device; its value is the
     * raw handle that programs see. What is queued on the default stream runs in order, as on
     * any other: NULL never means that a call may run at once on the calling thread. Queueing
     * never waits for what is queued. A fault of earlier work may come out of any of these;
     * TN_DEVICE_LOST is for good and names the first cause. */
    tn_status (*stream_create)(void *self, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err);
    void (*stream_destroy)(void *self, int32_t device, void *stream); /* lets its work end */
    tn_status (*stream_query)(void *self, int32_t device, void *stream, int32_t *out_done,
                              tn_error *err);
    tn_status (*stream_synchronize)(void *self, int32_t device, void *stream, tn_error *err);
    tn_status (*stream_wait)(void *self, int32_t device, void *stream, void *event, tn_error *err);
    tn_status (*device_synchronize)(void *self, int32_t device, tn_error *err);

    /* Events, all six or none: with streams or not at all. */
    tn_status (*event_create)(void *self, int32_t device, const tn_event_spec *spec, void **out,
                              tn_error *err);
    /* May come before records and waits that are queued have run: they still do. */
    void (*event_destroy)(void *self, int32_t device, void *event);
    tn_status (*event_record)(void *self, int32_t device, void *event, void *stream, tn_error *err);
    tn_status (*event_query)(void *self, int32_t device, void *event, int32_t *out_done,
                             tn_error *err);
    tn_status (*event_synchronize)(void *self, int32_t device, void *event, tn_error *err);
    tn_status (*event_elapsed)(void *self, int32_t device, void *start, void *stop, double *out_ms,
                               tn_error *err);

    /* Each may be NULL. Events for other processes: without them TN_EVENT_INTERPROCESS is refused.
     * Filling: without it the host fills and copies. Pinned memory of the host: without it ordinary
     * memory serves. */
    tn_status (*event_export)(void *self, int32_t device, void *event, tn_event_handle *out,
                              tn_error *err);
    tn_status (*event_import)(void *self, int32_t device, const tn_event_handle *handle, void **out,
                              tn_error *err);
    tn_status (*fill)(void *self, const tn_fill_job *job, tn_error *err);
    tn_status (*host_alloc)(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err);
    void (*host_free)(void *self, int32_t device, void *memory);

    /* Makes the device current for the calling thread in the vendor's own sense, so that code that
     * calls the vendor directly works on it; NULL where there is no such thing. Whether a device is
     * initialised already; NULL: it always is. */
    tn_status (*device_activate)(void *self, int32_t device, tn_error *err);
    int32_t (*device_is_initialized)(void *self, int32_t device);

    /* After a loss: gives up everything that was on the device and opens it anew. NULL: it cannot. */
    tn_status (*device_reset)(void *self, int32_t device, tn_error *err);

    /* Graphs, all four or none, with streams only: without them the host writes calls down and makes
     * them again. From graph_begin on what is queued on the stream is recorded and does not run, until
     * graph_end, which gives what graph_run runs any number of times, on any stream of the device, one
     * run after the other; with a NULL out_graph the recording is given up. Memory is taken and kernels
     * are planned meanwhile, as ever. graph_destroy may come while a run goes on, which ends well. */
    tn_status (*graph_begin)(void *self, int32_t device, void *stream, tn_error *err);
    tn_status (*graph_end)(void *self, int32_t device, void *stream, void **out_graph,
                           tn_error *err);
    tn_status (*graph_run)(void *self, int32_t device, void *graph, void *stream, tn_error *err);
    void (*graph_destroy)(void *self, int32_t device, void *graph);

    /* Makes random numbers on the device, in the stream's order. NULL, or TN_UNSUPPORTED and
     * TN_UNAVAILABLE: the host makes them and copies. */
    tn_status (*random)(void *self, const tn_random_job *job, tn_error *err);

    /* Gives back to the system what the platform itself keeps of memory that was freed. NULL: it keeps
     * none. */
    void (*memory_trim)(void *self, int32_t device);

    /* Of its properties what takes long to find out, and device_properties left unknown: numbers, the
     * capability, the architecture, dtypes. Asked when someone first wants to know, as an operator does that
     * is to run there, from any thread, and again only after a failure; `out` holds what is known by then.
     * NULL: there are no more. */
    tn_status (*device_numbers)(void *self, int32_t device, tn_device_properties *out,
                                tn_error *err);

    /* Captures, all three or none, with streams only: the program itself has the vendor record what is
     * queued on a stream whose handle it knows, for a graph of its own. Whether it does so now, without
     * harm to the capture; and memory in the order of such a stream, which is that graph's: each of its
     * runs has it from the one call to the other. Meanwhile nothing on that stream is waited for or asked,
     * and calls that have to do with other streams or with none do not harm the capture. */
    int32_t (*stream_is_captured)(void *self, int32_t device, void *stream);
    tn_status (*capture_alloc)(void *self, int32_t device, void *stream, uint64_t bytes, void **out,
                               tn_error *err);
    void (*capture_free)(void *self, int32_t device, void *stream, void *memory);

    /* A guard's scope of the vendor's own current device, both or neither: device_enter does what device_activate
     * does and gives what was current on this thread before, by whomever it was made so, which device_leave makes
     * current again. NULL: guards activate what was current by Tenon's own count. */
    tn_status (*device_enter)(void *self, int32_t device, void **out_previous, tn_error *err);
    void (*device_leave)(void *self, void *previous);

    /* Memory in the order of a stream, both or neither, with streams only: what is queued there after the one call and
     * before the other may use it. Neither waits for what is queued, but memory_alloc_on when there is no memory
     * otherwise. Each takes what the other or memory_alloc and memory_free have to do with, on any stream. The stream
     * is none that is recorded or captured. NULL: memory_alloc serves, and the stream is waited for before memory_free. */
    tn_status (*memory_alloc_on)(void *self, int32_t device, void *stream, uint64_t bytes,
                                 void **out, tn_error *err);
    tn_status (*memory_free_on)(void *self, int32_t device, void *stream, void *memory,
                                tn_error *err);
} tn_platform_row;
TN_ENDS_WITH(tn_platform_row, memory_free_on);

TN_END_DECLS

#endif
