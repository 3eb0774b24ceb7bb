/* A stub of NVIDIA's driver for machines without a GPU: libcuda.so.1 whose devices are parts of the host's
 * memory. It keeps books and checks what it is asked, strictly, and it computes nothing: kernels are
 * accepted and do not run, but for the one that writes what dropout keeps, which the stub of cuDNN reads, and the
 * one for sequences without keys, which mends what that leaves. Of a text in PTX that traps or stores at an address of
 * nobody's, a launch leaves the fault that the next call finds. What it does is done when a call returns.
 *
 * Environment, read at cuInit:
 *   STUB_DEVICES   how many there are (2)            STUB_MEMORY  bytes of each (256 MiB)
 *   STUB_VERSION   what cuDriverGetVersion says      STUB_INIT    what cuInit gives
 *   STUB_MIXED     1: the last device is of another name, and comes first in the driver's order
 *   STUB_MIG       1: the names are those of MIG instances
 *   STUB_POOLS     0: no pools of memory             STUB_PEERS   0: devices do not reach each other
 *   STUB_MODULES   0: no code can be loaded           STUB_PITCH   the most from row to row
 *   STUB_LOSE      a file: when it is there, the next call on device 0 finds a fault, and removes it
 *   STUB_FULL      a file: when it is there, the next context finds no memory, and removes it
 *   STUB_LOG       a file: gets a line for each call
 * CUDA_VISIBLE_DEVICES is read as the driver reads it. */
#ifndef TESTS_CUDA_STUB_H
#define TESTS_CUDA_STUB_H

#include "../../backends/cuda/attention/attention_args.h"
#include "../../backends/cuda/platform/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { STUB_DEVICES_MOST = 16, STUB_DEPTH = 32 };

#define CUDA_CALL_(field, name, parameters) cu_result name parameters;
CUDA_CALL_LIST(CUDA_CALL_)
CUDA_LATER_CALL_LIST(CUDA_CALL_)
#undef CUDA_CALL_

typedef struct stub_block {
    struct stub_block *next;
    char *memory;
    size_t bytes;
    cu_pool pool; /* NULL: of no pool */
    bool is_free; /* kept by its pool */
} stub_block;

/* The primary context of a device. It is the same object each time it is made anew. */
typedef struct stub_context {
    int ordinal; /* physical */
    int retained;
    cu_result fault; /* sticky */
    unsigned life;   /* goes up when it is reset: handles of earlier ones are void */
    stub_block *blocks;
    stub_block *pinned; /* the host's, which goes with the context too */
    size_t in_use;      /* of the device's memory, what pools keep among it */
    unsigned peers;     /* bits of devices that it was let into */
} stub_context;

/* Pools and handles stay reachable, also those that a reset has voided. */
typedef struct stub_pool {
    struct stub_pool *next;
    stub_context *context;
    unsigned life;
    uint64_t threshold;
} stub_pool;

/* A copy of rows, or with a NULL `from` a pattern of `bytes` bytes, `rows` times. A kernel's is of no row, and writes
 * the elements that dropout has, and what sequences without keys have. */
typedef struct stub_job {
    char *to;
    const char *from;
    unsigned char pattern[4];
    size_t bytes, rows, to_pitch, from_pitch;
    cuda_dropout_args dropout;
    cuda_attention_args empty;
    void (*work)(void *with); /* of another stub; NULL: none */
    void *with;
} stub_job;

/* Streams, events, functions and graphs. */
typedef struct stub_handle {
    struct stub_handle *next;
    int kind;
    stub_context *context;
    unsigned life;
    unsigned flags;
    unsigned shared; /* of a kernel: bytes of dynamic shared memory that are permitted */
    bool recorded;
    long long ns;         /* of its record */
    int waits;            /* for streams, until then */
    bool records;         /* of a stream: what is queued is kept in jobs, and not done */
    bool spoilt;          /* by what cannot be recorded */
    cu_capture_mode mode; /* of such a recording, and whose it is */
    pthread_t recorder;
    bool captured; /* of an event: its last record is part of a recording */
    struct stub_handle
        *origin; /* of a stream that joined a recording, and of such an event: where it is */
    stub_job *jobs;
    size_t job_count;
} stub_handle;
/* What the module does not name. */
enum {
    STUB_SHARED_ALWAYS = 48 << 10,
    STUB_SHARED_MOST = 227 << 10,
    STUB_CAPTURE_GLOBAL = 0,
    STUB_CAPTURE_ACTIVE = 1,
    STUB_CAPTURE_INVALIDATED = 2,
    STUB_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    STUB_ERROR_CAPTURE_ISOLATION = 905,
    STUB_ERROR_CAPTURED_EVENT = 907
};
/* Flags of a module, by what its function does. */
enum {
    STUB_DROPOUT = 1,
    STUB_TRAPS = 2,
    STUB_STRAYS = 4,
    STUB_FAULTS = STUB_TRAPS | STUB_STRAYS,
    STUB_EMPTY = 8
};
enum { STUB_STREAM = 0x51, STUB_EVENT, STUB_MODULE, STUB_FUNCTION, STUB_GRAPH, STUB_GRAPH_EXEC };

typedef struct stub_state {
    pthread_mutex_t lock;
    bool started;
    int physical; /* devices */
    int count;    /* that can be seen */
    int visible[STUB_DEVICES_MOST];
    size_t memory, pitch;
    bool pools, peers, mixed, split, modules;
    const char *lose, *full, *log;
    stub_pool *all_pools;
    stub_handle *all_handles;
    stub_context contexts[STUB_DEVICES_MOST];
} stub_state;

extern stub_state stub;

/* Writes the call to the log and says whether it may go on: the driver has started, there is a context, and
 * it has no fault. Gives the context that is current; `out` NULL: none is needed. */
cu_result stub_begin(const char *call, stub_context **out);

/* Whether a handle is of its kind and of the context's present life. */
bool stub_is(const void *handle, int kind, const stub_context *context);
/* A stream of the context: NULL and the two special numbers are. */
bool stub_is_stream(const void *stream, const stub_context *context);
/* Whether the bytes are in one block that is held, of this context, or of one whose memory it was let into. */
bool stub_owns(const stub_context *context, cu_deviceptr at, size_t bytes);

/* Handles, made in the context that is current, and ended there. */
cu_result stub_make(const char *call, int kind, unsigned flags, void **out);
cu_result stub_end(const char *call, int kind, void *handle);

/* Does a job, or keeps it where the stream records. */
void stub_job_do(const stub_job *job);
cu_result stub_queue(cu_stream stream, const stub_job *job);
cu_result stub_queue_work(cu_stream stream, void (*work)(void *with), void *with);
/* Whether anything may be queued there now: not where a recording is spoilt, nor on the default stream while one is
 * recorded that it waits for, which that spoils. */
cu_result stub_may_queue(cu_stream stream, const stub_context *context);
/* Spoils what is recorded on the stream. */
cu_result stub_not_while_recording(cu_stream stream);
/* Graphs and kernels that were launched. */
extern _Atomic int stub_graph_runs, stub_launches, stub_overlaps;
/* 1: an event is not reached, for who asks, before somebody has waited for a stream since. */
extern _Atomic int stub_waits_for_us;
/* On which stream the last memory of a pool's was taken, and freed. */
extern _Atomic(cu_stream) stub_taken_on, stub_freed_on;

/* Spoils recordings that forbid this thread what it calls. */
cu_result stub_not_while_capturing(void);
/* Spoils those of the whole context. */
cu_result stub_not_in(const stub_context *context);
/* Where the stream is recorded; NULL when it is not. */
stub_handle *stub_recording(cu_stream stream);

/* The context of a device that can be seen, by its handle; NULL for none. */
stub_context *stub_context_of(cu_device device);

/* Names and UUIDs, the same in both libraries. */
void stub_name(const stub_state *of, int physical, char *out, size_t size);
void stub_uuid(int physical, unsigned char out[16]);
size_t stub_number(const char *name, size_t standard);
void stub_read_environment(stub_state *out);

#endif
