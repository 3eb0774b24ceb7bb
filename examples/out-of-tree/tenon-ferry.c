/* tenon-ferry: the platform "ferry", whose devices are other processes.
 *
 * A server is started when its device is first used, and ends with this process. When it ends before,
 * the device is lost; resetting it starts another one. FERRY_DEVICES says how many devices there are (2),
 * FERRY_MEMORY how many bytes each has (256 MiB), FERRY_RUN a folder for files ferry-N.pid with their
 * process numbers. */
#include "line.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { DEVICES_MOST = 8, PATH_ROOM = 4096 };

typedef struct device {
    pthread_mutex_t lock;
    line *line;      /* NULL until the first use */
    uint16_t number; /* of the line: how many were before it */
} device;

typedef struct state {
    const tn_host *host;
    char server[PATH_ROOM];
    char run[PATH_ROOM]; /* "" for none */
    uint64_t memory;
    int32_t count;
    device devices[DEVICES_MOST];
} state;

/* A number from the environment, or what stands for it. */
static uint64_t setting(const char *name, uint64_t standard, uint64_t most)
{
    const char *text = getenv(name);
    uint64_t number = text ? strtoull(text, NULL, 10) : 0;
    return number == 0 ? standard : number > most ? most : number;
}

/* The server lies beside this module. */
static void find_server(char out[PATH_ROOM])
{
    Dl_info about;
    const char *own = dladdr((void *)(uintptr_t)find_server, &about) ? about.dli_fname : "";
    const char *slash = strrchr(own, '/');
    snprintf(out, PATH_ROOM, "%.*sferry-server", slash ? (int)(slash - own + 1) : 0, own);
}

/* Starts nothing: that there is a server to start is all that is looked for. */
static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    state *self = host->alloc(host->self, sizeof *self, _Alignof(state));
    const char *run = getenv("FERRY_RUN");
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "ferry: probe", "no memory for the platform");
    memset(self, 0, sizeof *self);
    self->host = host;
    self->memory = setting("FERRY_MEMORY", UINT64_C(256) << 20, UINT64_C(1) << 40);
    self->count = (int32_t)setting("FERRY_DEVICES", 2, DEVICES_MOST);
    snprintf(self->run, sizeof self->run, "%s", run ? run : "");
    find_server(self->server);
    if (access(self->server, X_OK) != 0) {
        int code = errno;
        tn_status status = tn_fail(err, TN_UNAVAILABLE, code, "ferry: probe", "no server: %s: %s",
                                   self->server, strerror(code));
        host->release(host->self, self);
        return status;
    }
    for (int32_t i = 0; i < DEVICES_MOST; i++)
        pthread_mutex_init(&self->devices[i].lock, NULL);
    *out_self = self;
    *out_devices = self->count;
    return TN_OK;
}

static tn_status open_line(const state *self, int32_t index, line **out, tn_error *err)
{
    char number[PATH_ROOM + 24] = "";
    if (self->run[0])
        snprintf(number, sizeof number, "%s/ferry-%d.pid", self->run, (int)index);
    const line_plan plan = {
        .host = self->host, .server = self->server, .memory = self->memory, .number = number};
    return line_open(&plan, out, err);
}

/* Streams and events are numbers. Those of a stream have the number of its line above them, so that work which
 * names addresses of an ended server never reaches the next one. Those of an event have its device above them. The
 * default stream is NULL. */
static uint32_t stream_of(const void *stream)
{
    return (uint32_t)((uintptr_t)stream & 0xFFFF);
}

static uint16_t line_of(const void *stream)
{
    return (uint16_t)((uintptr_t)stream >> 16);
}

static uint32_t event_of(const void *event)
{
    return (uint32_t)((uintptr_t)event & 0xFFFF) - 1;
}

static int32_t device_of(const void *event)
{
    return (int32_t)((uintptr_t)event >> 16);
}

/* Returns the line to a device with a new reference; starts a server at the first use. Fails with TN_DEVICE_LOST if the
 * line is lost or the stream belongs to an earlier line. */
static tn_status reach(state *self, int32_t index, const void *stream, const char *where,
                       line **out, tn_error *err)
{
    device *d = &self->devices[index];
    tn_status status = TN_OK;
    pthread_mutex_lock(&d->lock);
    if (!d->line)
        status = open_line(self, index, &d->line, err); /* line number 0 */
    if (!status && stream && line_of(stream) != d->number)
        status = tn_fail(err, TN_DEVICE_LOST, 0, where, "the server of this stream has ended");
    if (!status)
        status = line_check(d->line, where, err);
    if (!status) {
        line_hold(d->line);
        *out = d->line;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* The same of one that was reached before; NULL if it was not. */
static line *reached(state *self, int32_t index)
{
    device *d = &self->devices[index];
    pthread_mutex_lock(&d->lock);
    line *l = d->line;
    if (l)
        line_hold(l);
    pthread_mutex_unlock(&d->lock);
    return l;
}

static tn_status memory_alloc(void *any, int32_t index, uint64_t bytes, void **out, tn_error *err)
{
    static const char where[] = "ferry: memory_alloc";
    uint64_t address = 0;
    line *l;
    tn_status status = reach(any, index, NULL, where, &l, err);
    if (status)
        return status;
    status = line_take(l, bytes, where, &address, err);
    if (!status && !address)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, where,
                         "the server has no %llu bytes in one piece", (unsigned long long)bytes);
    if (!status)
        *out = (void *)(uintptr_t)address;
    line_release(l);
    return status;
}

static void memory_free(void *any, int32_t index, void *memory)
{
    line *l = reached(any, index);
    if (!l)
        return;
    const ferry_message message = {.kind = FERRY_FREE, .to = (uint64_t)(uintptr_t)memory};
    (void)line_send(l, &message, "ferry: memory_free", NULL);
    line_release(l);
}

static tn_status queue(state *self, int32_t index, const void *stream, ferry_message *job,
                       const char *where, tn_error *err)
{
    line *l;
    tn_status status = reach(self, index, stream, where, &l, err);
    if (status)
        return status;
    job->stream = stream_of(stream);
    status = line_queue(l, job, where, err);
    line_release(l);
    return status;
}

/* Between two servers nothing crosses directly: Tenon then goes through the host's memory. */
static tn_status copy(void *any, const tn_copy_job *job, tn_error *err)
{
    static const char where[] = "ferry: copy";
    bool in = job->from_device < 0, out = job->to_device < 0;
    if (!in && !out && job->to_device != job->from_device)
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "servers do not reach each other's memory");
    ferry_message message = {.kind = FERRY_COPY,
                             .to = (uint64_t)(uintptr_t)job->to,
                             .from = (uint64_t)(uintptr_t)job->from,
                             .bytes = job->bytes,
                             .rows = job->rows,
                             .to_pitch = job->to_pitch,
                             .from_pitch = job->from_pitch,
                             .way = in    ? FERRY_IN
                                    : out ? FERRY_OUT
                                          : FERRY_WITHIN};
    return queue(any, in ? job->to_device : job->from_device, job->stream, &message, where, err);
}

static tn_status fill(void *any, const tn_fill_job *job, tn_error *err)
{
    ferry_message message = {.kind = FERRY_FILL,
                             .to = (uint64_t)(uintptr_t)job->to,
                             .bytes = job->bytes,
                             .rows = 1,
                             .pattern_bytes = job->pattern_bytes};
    const uint32_t four = (uint32_t)job->pattern;
    const uint16_t two = (uint16_t)job->pattern;
    const uint8_t one = (uint8_t)job->pattern;
    switch (job->pattern_bytes) {
    case 1: memcpy(&message.pattern, &one, sizeof one); break;
    case 2: memcpy(&message.pattern, &two, sizeof two); break;
    case 4: memcpy(&message.pattern, &four, sizeof four); break;
    default: message.pattern = job->pattern; break;
    }
    return queue(any, job->device, job->stream, &message, "ferry: fill", err);
}

static tn_status device_properties(void *any, int32_t index, tn_device_properties *out,
                                   tn_error *err)
{
    const state *self = any;
    (void)err;
    tn_text_fit(out->name, sizeof out->name, "Ferry");
    out->memory_bytes = (int64_t)self->memory;
    out->physical_index = index;
    out->is_integrated = 0;
    out->known = TN_DEVICE_KNOWS(memory_bytes) | TN_DEVICE_KNOWS(physical_index) |
                 TN_DEVICE_KNOWS(is_integrated);
    return TN_OK;
}

static tn_status device_memory(void *any, int32_t index, tn_device_memory *out, tn_error *err)
{
    state *self = any;
    int64_t total = (int64_t)self->memory, in_use = 0;
    line *l = reached(self, index);
    tn_status status = l ? line_check(l, "ferry: device_memory", err) : TN_OK;
    if (l && !status)
        in_use = (int64_t)atomic_load(&line_segment(l)->in_use);
    if (l)
        line_release(l);
    if (status)
        return status;
    out->total = tn_fact_of(total, "FERRY_MEMORY");
    out->available = tn_fact_of(total - in_use, "FERRY_MEMORY less what the server has given");
    out->in_use = tn_fact_of(in_use, "counted by the server");
    return TN_OK;
}

static tn_status device_link(void *any, int32_t from, int32_t to, int32_t *out_link, tn_error *err)
{
    (void)any, (void)from, (void)to, (void)err;
    *out_link = TN_LINK_STAGED;
    return TN_OK;
}

/* The number of a line that was reached: an earlier one than the device's if it was replaced since. */
static uint16_t number_of(device *d, const line *l)
{
    pthread_mutex_lock(&d->lock);
    const uint16_t number = d->line == l ? d->number : (uint16_t)(d->number - 1);
    pthread_mutex_unlock(&d->lock);
    return number;
}

/* Every stream is as urgent as another. */
static tn_status stream_create(void *any, int32_t index, const tn_stream_spec *spec, void **out,
                               tn_error *err)
{
    static const char where[] = "ferry: stream_create";
    state *self = any;
    line *l;
    (void)spec;
    tn_status status = reach(self, index, NULL, where, &l, err);
    if (status)
        return status;
    int32_t number = line_stream_take(l);
    if (number < 0)
        status =
            tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "all %d streams are taken", FERRY_STREAMS);
    else
        *out = (void *)(((uintptr_t)number_of(&self->devices[index], l) << 16) | (uintptr_t)number);
    line_release(l);
    return status;
}

static void stream_destroy(void *any, int32_t index, void *stream)
{
    line *l;
    if (reach(any, index, stream, "ferry: stream_destroy", &l, NULL))
        return;
    line_stream_give(l, stream_of(stream));
    line_release(l);
}

static tn_status stream_query(void *any, int32_t index, void *stream, int32_t *out_done,
                              tn_error *err)
{
    line *l;
    tn_status status = reach(any, index, stream, "ferry: stream_query", &l, err);
    if (status)
        return status;
    *out_done = line_has(l, line_last(l, stream_of(stream)));
    line_release(l);
    return TN_OK;
}

static tn_status stream_synchronize(void *any, int32_t index, void *stream, tn_error *err)
{
    static const char where[] = "ferry: stream_synchronize";
    line *l;
    tn_status status = reach(any, index, stream, where, &l, err);
    if (status)
        return status;
    status = line_wait(l, line_last(l, stream_of(stream)), where, err);
    line_release(l);
    return status;
}

/* Those that were destroyed count too: they let their work end. */
static tn_status device_synchronize(void *any, int32_t index, tn_error *err)
{
    static const char where[] = "ferry: device_synchronize";
    line *l;
    tn_status status = reach(any, index, NULL, where, &l, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < FERRY_STREAMS && !status; i++)
        status = line_wait(l, line_last(l, i), where, err);
    if (!status)
        status = line_check(l, where, err);
    line_release(l);
    return status;
}

/* The server waits for its own events; for another server's, someone here does. */
static tn_status stream_wait(void *any, int32_t index, void *stream, void *event, tn_error *err)
{
    static const char where[] = "ferry: stream_wait";
    line *l, *of;
    tn_status status = reach(any, index, stream, where, &l, err);
    if (status)
        return status;
    if (device_of(event) == index) {
        line_point at = line_recorded(l, event_of(event));
        ferry_message job = {.kind = FERRY_WAIT,
                             .stream = stream_of(stream),
                             .after_stream = at.stream,
                             .after = at.number};
        status = line_queue(l, &job, where, err);
    } else {
        status = reach(any, device_of(event), NULL, where, &of, err);
        if (!status) {
            status = line_gate(l, stream_of(stream), of, event_of(event), where, err);
            line_release(of);
        }
    }
    line_release(l);
    return status;
}

static tn_status event_create(void *any, int32_t index, const tn_event_spec *spec, void **out,
                              tn_error *err)
{
    static const char where[] = "ferry: event_create";
    line *l;
    (void)spec;
    tn_status status = reach(any, index, NULL, where, &l, err);
    if (status)
        return status;
    int32_t number = line_event_take(l);
    if (number < 0)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, where, "all %d events are taken", FERRY_EVENTS);
    else
        *out = (void *)(((uintptr_t)index << 16) | ((uintptr_t)number + 1));
    line_release(l);
    return status;
}

static void event_destroy(void *any, int32_t index, void *event)
{
    line *l = reached(any, index);
    if (!l)
        return;
    line_event_give(l, event_of(event));
    line_release(l);
}

static tn_status event_record(void *any, int32_t index, void *event, void *stream, tn_error *err)
{
    ferry_message job = {.kind = FERRY_RECORD, .event = event_of(event)};
    return queue(any, index, stream, &job, "ferry: event_record", err);
}

static tn_status event_query(void *any, int32_t index, void *event, int32_t *out_done,
                             tn_error *err)
{
    line *l;
    tn_status status = reach(any, index, NULL, "ferry: event_query", &l, err);
    if (status)
        return status;
    *out_done = line_has(l, line_recorded(l, event_of(event)));
    line_release(l);
    return TN_OK;
}

static tn_status event_synchronize(void *any, int32_t index, void *event, tn_error *err)
{
    static const char where[] = "ferry: event_synchronize";
    line *l;
    tn_status status = reach(any, index, NULL, where, &l, err);
    if (status)
        return status;
    status = line_wait(l, line_recorded(l, event_of(event)), where, err);
    line_release(l);
    return status;
}

static tn_status event_elapsed(void *any, int32_t index, void *start, void *stop, double *out_ms,
                               tn_error *err)
{
    line *l;
    tn_status status = reach(any, index, NULL, "ferry: event_elapsed", &l, err);
    if (status)
        return status;
    int64_t from = atomic_load(&line_segment(l)->events[event_of(start)].ns);
    int64_t to = atomic_load(&line_segment(l)->events[event_of(stop)].ns);
    *out_ms = (double)(to - from) / 1e6;
    line_release(l);
    return TN_OK;
}

/* Nothing is current in a sense of the ferry's own; making a device current starts its server. */
static tn_status device_activate(void *any, int32_t index, tn_error *err)
{
    line *l;
    tn_status status = reach(any, index, NULL, "ferry: device_activate", &l, err);
    if (!status)
        line_release(l);
    return status;
}

static int32_t device_is_initialized(void *any, int32_t index)
{
    line *l = reached(any, index);
    if (l)
        line_release(l);
    return l != NULL;
}

static tn_status device_reset(void *any, int32_t index, tn_error *err)
{
    state *self = any;
    device *d = &self->devices[index];
    line *fresh = NULL;
    pthread_mutex_lock(&d->lock);
    if (d->line)
        line_cut(d->line);
    tn_status status = open_line(self, index, &fresh, err);
    if (!status) {
        if (d->line)
            line_release(d->line);
        d->line = fresh;
        d->number++;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

static const tn_platform_row platform = {
    .struct_size = sizeof platform,
    .name = "ferry",
    .kind = TN_PLATFORM_OOT,
    .remedy = "build ferry-server beside tenon-ferry.so: make",
    .probe = probe,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .copy = copy,
    .device_name = "Ferry",
    .async_output_reason = "a server computes while others copy, but nothing computes there yet",
    .device_properties = device_properties,
    .device_memory = device_memory,
    .device_link = device_link,
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
    .device_activate = device_activate,
    .device_is_initialized = device_is_initialized,
    .device_reset = device_reset,
};
static const tn_platform_row *const platforms[] = {&platform, NULL};

static const tn_module module = {
    .struct_size = sizeof module,
    TN_MODULE_ABI,
    .name = "ferry",
    .version = "1.0",
    .platforms = platforms,
};

tn_status tn_module_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}
