/* The platform "faulty": one device with streams of its own that does one thing wrong, the one that the
 * variable FAULTY names; without it everything is right. */
#include "faulty_queue.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CAPACITY  (INT64_C(256) << 20)
#define ALIGNMENT 64

typedef struct state {
    fault wrong;
    faulty_stream *standard;
    _Atomic int64_t in_use;
    char *arena; /* for memory that overlaps */
    _Atomic uint64_t arena_used;
    _Atomic(void *) loose; /* freed before its time: the next one has it */
} state;

typedef union header {
    uint64_t bytes;
    char room[ALIGNMENT];
} header;

static tn_status no_memory(const char *where, tn_error *err)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "no memory");
}

static fault read_fault(void)
{
    const char *word = getenv("FAULTY");
#define FAULT_READ(name, text, noticed, meaning) \
    if (word && strcmp(word, text) == 0)         \
        return FAULT_##name;
    FAULT_LIST(FAULT_READ)
#undef FAULT_READ
    return FAULT_NONE;
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    state *self = calloc(1, sizeof *self);
    (void)host;
    if (!self)
        return no_memory("faulty: probe", err);
    self->wrong = read_fault();
    self->arena = malloc(1 << 20);
    self->standard = queue_open(self->wrong);
    *out_self = self;
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *any, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    state *self = any;
    (void)device;
    if (self->wrong == FAULT_MEMORY_ENDLESS && bytes > CAPACITY)
        bytes = 4096;
    if (self->wrong == FAULT_MEMORY_SHARED && bytes < 4096) {
        *out = (char *)(((uintptr_t)self->arena + 63) & ~(uintptr_t)63) +
               64 * (atomic_fetch_add(&self->arena_used, 1) % 4096);
        return TN_OK;
    }
    if (bytes > (uint64_t)(CAPACITY - atomic_load(&self->in_use)))
        return no_memory("faulty: memory_alloc", err);
    header *block = aligned_alloc(ALIGNMENT, sizeof *block + ((size_t)bytes + 2 * ALIGNMENT) /
                                                                 ALIGNMENT * ALIGNMENT);
    if (!block)
        return no_memory("faulty: memory_alloc", err);
    block->bytes = bytes;
    atomic_fetch_add(&self->in_use, (int64_t)bytes);
    *out = (char *)(block + 1) + (self->wrong == FAULT_MEMORY_ODD ? 8 : 0);
    return TN_OK;
}

static void memory_free(void *any, int32_t device, void *memory)
{
    state *self = any;
    char *at = memory;
    (void)device;
    if (at >= self->arena && at < self->arena + (1 << 20))
        return;
    header *block = (header *)(void *)(at - (self->wrong == FAULT_MEMORY_ODD ? 8 : 0)) - 1;
    queue_wait_all();
    atomic_fetch_sub(&self->in_use, (int64_t)block->bytes);
    free(block);
}

static tn_status add(state *self, void *stream, const faulty_job *job, tn_error *err)
{
    return queue_add(stream ? stream : self->standard, job) ? TN_OK
                                                            : no_memory("faulty: queue", err);
}

static tn_status memory_alloc_on(void *any, int32_t device, void *stream, uint64_t bytes,
                                 void **out, tn_error *err)
{
    state *self = any;
    header *loose = atomic_exchange(&self->loose, NULL);
    (void)stream;
    if (loose && loose[-1].bytes == bytes) {
        *out = loose;
        return TN_OK;
    }
    if (loose)
        memory_free(self, device, loose);
    return memory_alloc(self, device, bytes, out, err);
}

static tn_status memory_free_on(void *any, int32_t device, void *stream, void *memory,
                                tn_error *err)
{
    state *self = any;
    (void)err;
    if (self->wrong != FAULT_FREE_HASTY) {
        queue_wait(stream ? stream : self->standard);
        memory_free(self, device, memory);
        return TN_OK;
    }
    void *before = atomic_exchange(&self->loose, memory);
    if (before)
        memory_free(self, device, before);
    return TN_OK;
}

static tn_status copy(void *any, const tn_copy_job *job, tn_error *err)
{
    const state *self = any;
    if (self->wrong == FAULT_COPY_AWAY)
        return tn_fail(err, TN_UNAVAILABLE, 0, "faulty: copy", "not today");
    return add(any, job->stream, &(faulty_job){.kind = JOB_COPY, .copy = *job}, err);
}

static tn_status fill(void *any, const tn_fill_job *job, tn_error *err)
{
    return add(any, job->stream, &(faulty_job){.kind = JOB_FILL, .fill = *job}, err);
}

static tn_status device_properties(void *any, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    const state *self = any;
    (void)device;
    bool is_spared = strcmp(program_invocation_short_name, "tenon-probe") == 0;
    while (self->wrong == FAULT_PROPERTY_HANGS && !is_spared)
        (void)pause();
    if (self->wrong == FAULT_PROPERTY_CRASHES && !is_spared)
        (void)raise(SIGSEGV);
    if (self->wrong == FAULT_PROPERTY_FAILS)
        return tn_fail(err, TN_IO, 5, "faulty: device_properties", "the board does not answer");
    tn_text_fit(out->name, sizeof out->name, "Faulty");
    out->memory_bytes = CAPACITY;
    out->multi_processor_count = self->wrong == FAULT_PROPERTY_SENSE ? -3 : 4;
    out->capability.major = self->wrong == FAULT_CAPABILITY_NEGATIVE ? -1 : 1;
    out->known = TN_DEVICE_KNOWS(memory_bytes) | TN_DEVICE_KNOWS(multi_processor_count) |
                 TN_DEVICE_KNOWS(capability);
    if (self->wrong == FAULT_PROPERTY_BITS)
        out->known |= UINT64_C(1) << 50;
    out->dtypes[0] = TN_F32;
    out->dtypes[1] = self->wrong == FAULT_DTYPE_TWICE     ? TN_F32
                     : self->wrong == FAULT_DTYPE_UNKNOWN ? 0xFF
                                                          : TN_I32;
    return TN_OK;
}

static tn_status device_memory(void *any, int32_t device, tn_device_memory *out, tn_error *err)
{
    state *self = any;
    int64_t in_use = self->wrong == FAULT_MEMORY_HIDES ? 0 : atomic_load(&self->in_use);
    (void)device, (void)err;
    out->total = tn_fact_of(CAPACITY, "a constant");
    out->available = tn_fact_of(
        self->wrong == FAULT_MEMORY_BOASTS ? 2 * CAPACITY : CAPACITY - in_use, "counted");
    out->in_use = tn_fact_of(in_use, "counted");
    return TN_OK;
}

static tn_status stream_create(void *any, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err)
{
    const state *self = any;
    (void)device;
    if (self->wrong == FAULT_PRIORITY_REFUSED && spec->priority != TN_PRIORITY_DEFAULT)
        return tn_fail(err, TN_UNSUPPORTED, 0, "faulty: stream_create", "no priorities here");
    faulty_stream *stream = queue_open(self->wrong);
    if (!stream)
        return no_memory("faulty: stream_create", err);
    *out = stream;
    return TN_OK;
}

static void stream_destroy(void *any, int32_t device, void *stream)
{
    (void)any, (void)device;
    queue_close(stream);
}

static tn_status stream_query(void *any, int32_t device, void *stream, int32_t *out_done,
                              tn_error *err)
{
    state *self = any;
    (void)device, (void)err;
    *out_done = self->wrong == FAULT_STREAM_DONE ? 1
                : self->wrong == FAULT_STREAM_NEVER
                    ? 0
                    : queue_is_done(stream ? stream : self->standard);
    return TN_OK;
}

static tn_status stream_synchronize(void *any, int32_t device, void *stream, tn_error *err)
{
    state *self = any;
    (void)device, (void)err;
    if (self->wrong != FAULT_STREAM_HASTY)
        queue_wait(stream ? stream : self->standard);
    return TN_OK;
}

static tn_status stream_wait(void *any, int32_t device, void *stream, void *event, tn_error *err)
{
    state *self = any;
    (void)device;
    if (self->wrong == FAULT_WAIT_IGNORED)
        return TN_OK;
    faulty_mark *mark = queue_mark_latest(event);
    bool moves = self->wrong == FAULT_WAIT_MOVES;
    tn_status status =
        add(self, stream,
            &(faulty_job){.kind = JOB_WAIT, .event = moves ? event : NULL, .mark = mark}, err);
    queue_mark_release(mark);
    return status;
}

static tn_status device_synchronize(void *any, int32_t device, tn_error *err)
{
    const state *self = any;
    (void)device, (void)err;
    if (self->wrong == FAULT_DEVICE_HASTY)
        queue_wait(self->standard);
    else
        queue_wait_all();
    return TN_OK;
}

static tn_status event_create(void *any, int32_t device, const tn_event_spec *spec, void **out,
                              tn_error *err)
{
    faulty_event *event = queue_event_create();
    (void)any, (void)device, (void)spec;
    if (!event)
        return no_memory("faulty: event_create", err);
    *out = event;
    return TN_OK;
}

static void event_destroy(void *any, int32_t device, void *event)
{
    (void)any, (void)device;
    queue_event_release(event);
}

static tn_status event_record(void *any, int32_t device, void *event, void *stream, tn_error *err)
{
    state *self = any;
    faulty_mark *mark = queue_mark_latest(event);
    (void)device;
    if (mark) {
        queue_mark_release(mark);
        if (self->wrong == FAULT_EVENT_FIRST)
            return TN_OK;
    }
    mark = queue_mark_create(event);
    if (!mark)
        return no_memory("faulty: event_record", err);
    tn_status status = add(self, stream, &(faulty_job){.kind = JOB_RECORD, .mark = mark}, err);
    queue_mark_release(mark);
    return status;
}

static tn_status event_query(void *any, int32_t device, void *event, int32_t *out_done,
                             tn_error *err)
{
    const state *self = any;
    (void)device, (void)err;
    *out_done = self->wrong == FAULT_EVENT_DONE    ? 1
                : self->wrong == FAULT_EVENT_NEVER ? 0
                                                   : queue_event_is_done(event);
    return TN_OK;
}

static tn_status event_synchronize(void *any, int32_t device, void *event, tn_error *err)
{
    const state *self = any;
    (void)device, (void)err;
    while (self->wrong == FAULT_EVENT_NEVER)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    if (self->wrong != FAULT_EVENT_HASTY)
        queue_event_wait(event);
    return TN_OK;
}

static tn_status event_elapsed(void *any, int32_t device, void *start, void *stop, double *out_ms,
                               tn_error *err)
{
    const state *self = any;
    double ms = (double)(queue_event_ns(stop) - queue_event_ns(start)) / 1e6;
    (void)device, (void)err;
    switch (self->wrong) {
    case FAULT_TIME_SECONDS: *out_ms = ms / 1e3; break;
    case FAULT_TIME_STILL: *out_ms = 0; break;
    case FAULT_TIME_FAST: *out_ms = ms * 1e3; break;
    case FAULT_TIME_UNSIGNED: *out_ms = ms < 0 ? -ms : ms; break;
    default: *out_ms = ms; break;
    }
    return TN_OK;
}

/* Not constant, unlike a real module's, as the entry may spoil it. */
static tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "faulty",
    .kind = TN_PLATFORM_OOT,
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
    .device_properties = device_properties,
    .device_memory = device_memory,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .device_synchronize = device_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .fill = fill,
    .memory_alloc_on = memory_alloc_on,
    .memory_free_on = memory_free_on,
};
static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "faulty",
                                 .version = "1.0",
                                 .platforms = platforms};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    if (read_fault() == FAULT_FORK_IGNORED)
        platform.flags = TN_PLATFORM_FORK_SAFE;
    *out = &module;
    return TN_OK;
}
