/* The sample device of the seed, as a module: one device, index 0 only, 80 multiprocessors, capability 0,
 * events timed with the monotonic clock. Its work is done when a call returns. Where the seed breaks
 * the rules of the device interface (an event may be recorded once, a query answers nothing, -1 is an
 * assertion), the rules win. */
#include <stdatomic.h>
#include <tenon/module/platform.h>
#include <time.h>

enum { ALIGNMENT = 64 };

/* Streams have an identity and nothing else. */
typedef struct stream {
    int32_t priority;
} stream;

typedef struct event {
    _Atomic int64_t ns;
} event;

static const tn_host *host_of(const void *self)
{
    return self;
}

static tn_status check_device(const char *where, int32_t device, tn_error *err)
{
    return device <= 0 ? TN_OK
                       : tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                                 "only device index 0 is supported, found %d", (int)device);
}

static tn_status take(const tn_host *host, size_t bytes, size_t align, const char *where,
                      void **out, tn_error *err)
{
    void *memory = host->alloc(host->self, bytes, align);
    if (!memory)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "no memory for %zu bytes", bytes);
    *out = memory;
    return TN_OK;
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)err;
    *out_self = (void *)(uintptr_t)host; /* only ever read: there is nothing else to keep */
    *out_devices = 1;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    static const char where[] = "sample: memory_alloc";
    tn_status status = check_device(where, device, err);
    if (!status && bytes > SIZE_MAX / 2)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "there are not so many addresses");
    return status ? status : take(host_of(self), (size_t)bytes, ALIGNMENT, where, out, err);
}

static void give(void *self, int32_t device, void *memory)
{
    const tn_host *host = host_of(self);
    (void)device;
    host->release(host->self, memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self;
    tn_status status = check_device("sample: copy", job->to_device, err);
    if (!status)
        status = check_device("sample: copy", job->from_device, err);
    for (uint64_t row = 0; !status && row < job->rows; row++)
        memcpy((char *)job->to + row * job->to_pitch,
               (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
    return status;
}

static tn_status device_properties(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    (void)self;
    tn_text_fit(out->name, sizeof out->name, "Seed sample");
    out->capability = (tn_capability){0, 0};
    out->multi_processor_count = 80;
    out->max_threads_per_multi_processor = 1;
    out->known = TN_DEVICE_KNOWS(capability) | TN_DEVICE_KNOWS(multi_processor_count) |
                 TN_DEVICE_KNOWS(max_threads_per_multi_processor);
    return check_device("sample: device_properties", device, err);
}

static tn_status stream_create(void *self, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err)
{
    (void)device;
    tn_status status =
        take(host_of(self), sizeof(stream), _Alignof(stream), "sample: stream_create", out, err);
    if (!status)
        ((stream *)*out)->priority = spec->priority;
    return status;
}

static tn_status stream_query(void *self, int32_t device, void *any, int32_t *out_done,
                              tn_error *err)
{
    (void)self, (void)device, (void)any, (void)err;
    *out_done = 1;
    return TN_OK;
}

static tn_status stream_synchronize(void *self, int32_t device, void *any, tn_error *err)
{
    (void)self, (void)device, (void)any, (void)err;
    return TN_OK;
}

static tn_status stream_wait(void *self, int32_t device, void *any, void *waited, tn_error *err)
{
    (void)self, (void)device, (void)any, (void)waited, (void)err;
    return TN_OK;
}

static tn_status device_synchronize(void *self, int32_t device, tn_error *err)
{
    (void)self;
    return check_device("sample: device_synchronize", device, err);
}

static tn_status event_create(void *self, int32_t device, const tn_event_spec *spec, void **out,
                              tn_error *err)
{
    (void)device, (void)spec;
    tn_status status =
        take(host_of(self), sizeof(event), _Alignof(event), "sample: event_create", out, err);
    if (!status)
        atomic_init(&((event *)*out)->ns, 0);
    return status;
}

static tn_status event_record(void *self, int32_t device, void *any, void *on, tn_error *err)
{
    struct timespec now;
    event *recorded = any;
    (void)self, (void)device, (void)on, (void)err;
    clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&recorded->ns, now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
    return TN_OK;
}

static tn_status event_query(void *self, int32_t device, void *any, int32_t *out_done,
                             tn_error *err)
{
    return stream_query(self, device, any, out_done, err);
}

static tn_status event_elapsed(void *self, int32_t device, void *start, void *stop, double *out_ms,
                               tn_error *err)
{
    (void)self, (void)device, (void)err;
    *out_ms =
        (double)(atomic_load(&((event *)stop)->ns) - atomic_load(&((event *)start)->ns)) / 1e6;
    return TN_OK;
}

static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "sample",
    .kind = TN_PLATFORM_OOT,
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = give,
    .copy = copy,
    .device_properties = device_properties,
    .stream_create = stream_create,
    .stream_destroy = give,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .device_synchronize = device_synchronize,
    .event_create = event_create,
    .event_destroy = give,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = stream_synchronize,
    .event_elapsed = event_elapsed,
};
static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "seed-sample",
                                 .version = "1.0",
                                 .platforms = platforms};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
