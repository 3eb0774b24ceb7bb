#include "async_platform.h"

#include "async_queue.h"
#include "device/stream/stream.h"

#include <math.h>
#include <stdlib.h>

// clang-format off
#define FUNCTIONS(X)                                                                         \
    X(memory_alloc) X(memory_free) X(copy) X(device_properties) X(device_memory)             \
    X(device_link) X(stream_create) X(stream_destroy) X(stream_query) X(stream_synchronize)  \
    X(stream_wait) X(device_synchronize) X(event_create) X(event_destroy)                    \
    X(event_record) X(event_query) X(event_synchronize) X(event_elapsed) X(event_export)     \
    X(event_import) X(fill) X(host_alloc) X(host_free) X(device_activate)                    \
    X(device_is_initialized) X(device_reset) X(memory_alloc_on) X(memory_free_on)
// clang-format on

enum {
#define NUMBER(name) F_##name,
    FUNCTIONS(NUMBER)
#undef NUMBER
        FUNCTION_COUNT,
    ANY = -1,    /* a fault's function */
    HOLLOW = -1, /* a status: does nothing and says TN_OK */
    NONSENSE = 4711
};
static const char *const names[] = {
#define NAME(name) #name,
    FUNCTIONS(NAME)
#undef NAME
};

enum { FIRST_CAPACITY = 1 << 30 };
_Atomic uint64_t async_capacity = FIRST_CAPACITY;
_Atomic bool async_timeless;
_Atomic bool async_sharing;
_Atomic bool async_ordering;
_Atomic bool async_initialized[ASYNC_DEVICES];
_Atomic int32_t async_last_priority;
_Atomic uint32_t async_last_flags;
_Thread_local int32_t async_active = -1;

typedef struct block {
    struct block *next;
    int32_t device;
    bool of_host;
    uint64_t bytes;
    void *memory;
} block;

/* Under the queue's lock. */
static struct {
    block *blocks;
    uint64_t used[ASYNC_DEVICES];
    async_counts held;
    long calls[FUNCTION_COUNT];
    int fault; /* a function's number, or ANY */
    long fault_left;
    tn_status fault_status;
} all;

static tn_status lost_or_ok(int function, int32_t device, tn_error *err)
{
    const queue_device *d = &queue_devices[device];
    return d->lost ? tn_fail(err, TN_DEVICE_LOST, 99, names[function], "%s", d->cause) : TN_OK;
}

/* Takes the lock, counts the call, and says how it goes: as the test wishes, or as the device is. */
static tn_status begin(int function, int32_t device, tn_error *err)
{
    tni_mutex_lock(&queue_lock);
    all.calls[function]++;
    if (all.fault_left > 0 && (all.fault == function || all.fault == ANY) && --all.fault_left == 0)
        return all.fault_status
                   ? tn_fail(err, all.fault_status, 77, names[function], "fails on request")
                   : HOLLOW;
    if (device < 0 || device >= ASYNC_DEVICES)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, names[function], "no device %d", (int)device);
    if (function == F_device_reset)
        return TN_OK;
    if (function != F_device_properties)
        async_initialized[device] = true;
    return lost_or_ok(function, device, err);
}

static void note(int function)
{
    tni_mutex_lock(&queue_lock);
    all.calls[function]++;
}

static tn_status end(tn_status status)
{
    tni_mutex_unlock(&queue_lock);
    return status == HOLLOW ? TN_OK : status;
}

static tn_status no_memory(int function, tn_error *err)
{
    return tn_fail(err, TN_OUT_OF_MEMORY, 0, names[function], "the host has no memory");
}

static tn_status block_create(int function, int32_t device, uint64_t bytes, bool of_host,
                              void **out, tn_error *err)
{
    tn_status status = begin(function, device, err);
    if (status)
        return end(status);
    uint64_t room = async_capacity - all.used[device];
    if (!of_host && bytes > room)
        return end(tn_fail(err, TN_OUT_OF_MEMORY, 2, names[function], "%llu bytes are free",
                           (unsigned long long)room));
    block *b = malloc(sizeof *b);
    void *memory = b ? aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64) : NULL;
    if (!memory) {
        free(b);
        return end(no_memory(function, err));
    }
    *b = (block){all.blocks, device, of_host, bytes, memory};
    all.blocks = b;
    all.used[device] += of_host ? 0 : bytes;
    *(of_host ? &all.held.host_blocks : &all.held.blocks) += 1;
    *out = memory;
    return end(TN_OK);
}

static void block_unlink(block **link)
{
    block *b = *link;
    *link = b->next;
    all.used[b->device] -= b->of_host ? 0 : b->bytes;
    *(b->of_host ? &all.held.host_blocks : &all.held.blocks) -= 1;
    free(b->memory);
    free(b);
}

static void block_release(int function, int32_t device, bool of_host, const void *memory)
{
    block **link = &all.blocks;
    note(function);
    while (*link &&
           ((*link)->memory != memory || (*link)->device != device || (*link)->of_host != of_host))
        link = &(*link)->next;
    if (*link)
        block_unlink(link);
    else
        all.held.wrong++;
    end(TN_OK);
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self;
    return block_create(F_memory_alloc, device, bytes, false, out, err);
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self;
    block_release(F_memory_free, device, false, memory);
}

static tn_status host_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self;
    return block_create(F_host_alloc, device, bytes, true, out, err);
}

static void host_free(void *self, int32_t device, void *memory)
{
    (void)self;
    block_release(F_host_free, device, true, memory);
}

static tn_status memory_alloc_on(void *self, int32_t device, void *on, uint64_t bytes, void **out,
                                 tn_error *err)
{
    (void)self, (void)on;
    return block_create(F_memory_alloc_on, device, bytes, false, out, err);
}

/* When the stream has come so far. */
static void free_now(void *memory)
{
    block **link = &all.blocks;
    tni_mutex_lock(&queue_lock);
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    if (*link)
        block_unlink(link);
    else
        all.held.wrong++;
    tni_mutex_unlock(&queue_lock);
}

/* Puts `what` on a stream, unless `status` says that it is not to be. */
static tn_status queue(tn_status status, int32_t device, void *on, const op *what, tn_error *err)
{
    return end(status ? status : queue_add(device, on, what, err));
}

static tn_status memory_free_on(void *self, int32_t device, void *on, void *memory, tn_error *err)
{
    (void)self;
    return queue(begin(F_memory_free_on, device, err), device, on,
                 &(op){.kind = OP_CALL, .call = free_now, .user = memory}, err);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    int32_t device = job->to_device >= 0 ? job->to_device : job->from_device;
    (void)self;
    return queue(begin(F_copy, device, err), device, job->stream,
                 &(op){.kind = OP_COPY, .copy = *job}, err);
}

static tn_status fill(void *self, const tn_fill_job *job, tn_error *err)
{
    (void)self;
    return queue(begin(F_fill, job->device, err), job->device, job->stream,
                 &(op){.kind = OP_FILL, .fill = *job}, err);
}

static tn_status device_properties(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    (void)self;
    tn_status status = begin(F_device_properties, device, err);
    if (!status) {
        snprintf(out->name, sizeof out->name, "Async Board %d", (int)device);
        out->memory_bytes = (int64_t)async_capacity;
        out->known = TN_DEVICE_KNOWS(memory_bytes);
        out->dtypes[0] = TN_F32;
    }
    return end(status);
}

static tn_status device_memory(void *self, int32_t device, tn_device_memory *out, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_device_memory, device, err);
    if (!status) {
        out->total = tn_fact_of((int64_t)async_capacity, "async");
        out->available = tn_fact_of((int64_t)(async_capacity - all.used[device]), "async");
        out->in_use = tn_fact_of((int64_t)all.used[device], "async");
    }
    return end(status);
}

static tn_status device_link(void *self, int32_t from, int32_t to, int32_t *out, tn_error *err)
{
    (void)self, (void)to;
    tn_status status = begin(F_device_link, from, err);
    if (!status)
        *out = TN_LINK_BUS;
    return end(status);
}

static tn_status stream_create(void *self, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err)
{
    (void)self;
    tn_status status = begin(F_stream_create, device, err);
    stream *s = status ? NULL : queue_stream_start(device);
    if (!status && !s)
        status = no_memory(F_stream_create, err);
    if (!status) {
        all.held.streams++;
        async_last_priority = spec->priority;
        *out = s;
    }
    return end(status);
}

static void stream_destroy(void *self, int32_t device, void *native)
{
    (void)self, (void)device;
    note(F_stream_destroy);
    all.held.streams--;
    queue_stream_close(native);
    end(TN_OK);
}

/* What fails has written something all the same, as a stranger's function may. */
static tn_status answer(tn_status status, bool value, int32_t *out)
{
    if (status != HOLLOW)
        *out = status ? NONSENSE : value;
    return end(status);
}

static tn_status stream_query(void *self, int32_t device, void *native, int32_t *out, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_stream_query, device, err);
    return answer(status, !status && queue_is_idle(device, native), out);
}

static tn_status stream_synchronize(void *self, int32_t device, void *native, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_stream_synchronize, device, err);
    while (!status && !queue_is_idle(device, native))
        queue_change_wait();
    return end(status ? status : lost_or_ok(F_stream_synchronize, device, err));
}

static tn_status stream_wait(void *self, int32_t device, void *native, void *waited, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_stream_wait, device, err);
    return queue(status, device, native,
                 &(op){.kind = OP_WAIT, .event = waited, .turn = ((event *)waited)->asked}, err);
}

static tn_status device_synchronize(void *self, int32_t device, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_device_synchronize, device, err);
    while (!status && !queue_device_is_idle(device))
        queue_change_wait();
    return end(status ? status : lost_or_ok(F_device_synchronize, device, err));
}

static tn_status event_create(void *self, int32_t device, const tn_event_spec *spec, void **out,
                              tn_error *err)
{
    (void)self;
    tn_status status = begin(F_event_create, device, err);
    event *e = status ? NULL : queue_event_create(device, spec->flags);
    if (!status && !e)
        status = no_memory(F_event_create, err);
    if (!status) {
        all.held.events++;
        async_last_flags = spec->flags;
        *out = e;
    }
    return end(status);
}

static void event_destroy(void *self, int32_t device, void *native)
{
    (void)self, (void)device;
    note(F_event_destroy);
    all.held.events--;
    queue_event_disown(native);
    end(TN_OK);
}

static tn_status event_record(void *self, int32_t device, void *native, void *on, tn_error *err)
{
    event *e = native;
    (void)self;
    tn_status status = begin(F_event_record, device, err);
    if (!status)
        status =
            queue_add(device, on, &(op){.kind = OP_RECORD, .event = e, .turn = e->asked + 1}, err);
    if (!status)
        e->asked++;
    return end(status);
}

static tn_status event_query(void *self, int32_t device, void *native, int32_t *out, tn_error *err)
{
    const event *e = native;
    (void)self;
    tn_status status = begin(F_event_query, device, err);
    return answer(status, e->reached >= e->asked, out);
}

static tn_status event_synchronize(void *self, int32_t device, void *native, tn_error *err)
{
    const event *e = native;
    (void)self;
    tn_status status = begin(F_event_synchronize, device, err);
    uint64_t turn = e->asked;
    while (!status && e->reached < turn && !queue_devices[device].lost)
        queue_change_wait();
    return end(status ? status : lost_or_ok(F_event_synchronize, device, err));
}

static tn_status event_elapsed(void *self, int32_t device, void *start, void *stop, double *out,
                               tn_error *err)
{
    const event *from = start, *to = stop;
    (void)self;
    tn_status status = begin(F_event_elapsed, device, err);
    if (!status && !(from->flags & to->flags & TN_EVENT_TIMING))
        status = tn_fail(err, TN_UNSUPPORTED, 0, "event_elapsed", "created without timing");
    if (!status && (from->reached < from->asked || to->reached < to->asked))
        status = tn_fail(err, TN_NOT_READY, 0, "event_elapsed", "not complete");
    if (status != HOLLOW)
        *out = status ? NONSENSE : async_timeless ? (double)NAN : (double)(to->ns - from->ns) / 1e6;
    return end(status);
}

static tn_status event_export(void *self, int32_t device, void *native, tn_event_handle *out,
                              tn_error *err)
{
    (void)self;
    tn_status status = begin(F_event_export, device, err);
    if (!status && !async_sharing)
        status = tn_fail(err, TN_UNSUPPORTED, 0, "event_export", "no event leaves this process");
    if (!status) {
        memset(out->bytes, 0xA5, sizeof out->bytes);
        memcpy(out->bytes, &((event *)native)->number, sizeof(uint64_t));
    }
    return end(status);
}

static tn_status event_import(void *self, int32_t device, const tn_event_handle *handle, void **out,
                              tn_error *err)
{
    uint64_t number;
    (void)self;
    memcpy(&number, handle->bytes, sizeof number);
    tn_status status = begin(F_event_import, device, err);
    if (!status && !async_sharing)
        status =
            tn_fail(err, TN_UNSUPPORTED, 0, "event_import", "no event comes into this process");
    event *e = status ? NULL : queue_event_find(device, number);
    if (!status && !e)
        status = tn_fail(err, TN_NOT_FOUND, 0, "event_import", "no such event");
    if (!status) {
        all.held.events++;
        *out = e;
    }
    return end(status);
}

static tn_status device_activate(void *self, int32_t device, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_device_activate, device, err);
    if (!status)
        async_active = device;
    return end(status);
}

static int32_t device_is_initialized(void *self, int32_t device)
{
    (void)self;
    note(F_device_is_initialized);
    end(TN_OK);
    return async_initialized[device];
}

/* Gives up what is left on the device, so that a sanitizer sees who uses it again. */
static void give_up(int32_t device)
{
    block **link = &all.blocks;
    all.held.streams -= queue_streams_end(device);
    all.held.events -= queue_events_give_up(device);
    while (*link) {
        if ((*link)->device == device)
            block_unlink(link);
        else
            link = &(*link)->next;
    }
}

static tn_status device_reset(void *self, int32_t device, tn_error *err)
{
    (void)self;
    tn_status status = begin(F_device_reset, device, err);
    if (!status) {
        queue_devices[device].lost = true; /* drops what is queued */
        give_up(device);
        queue_devices[device].lost = false;
    }
    return end(status);
}

static tn_status probe(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)err;
    *out_self = &all;
    *out = ASYNC_DEVICES;
    return TN_OK;
}

/* Not constant, unlike a real module's, as it ends earlier where memory has no order. */
static tn_platform_row row = {.name = "async",
                              .kind = TN_PLATFORM_OOT,
                              .device_name = "Async",
                              .probe = probe,
#define FIELD(name) .name = (name),
                              FUNCTIONS(FIELD)
#undef FIELD
};

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row *const rows[] = {&row, NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "async",
                                     .version = "1",
                                     .platforms = rows};
    (void)host, (void)err;
    row.struct_size = async_ordering ? sizeof row : TN_UP_TO(tn_platform_row, device_leave);
    *out = &module;
    return TN_OK;
}

tni_builtin async_builtin(void)
{
    return (tni_builtin){"async", entry};
}

/* The registry keeps a pointer to its built-ins: each choice of them has a list that stays. */
void async_world_make(world *out, unsigned modules)
{
    static tni_builtin lists[WORLD_ALL + 1][8];
    const tni_builtin *others = world_builtins(modules);
    tn_error err = {0};
    size_t count = 0;
    for (; others[count].entry; count++)
        lists[modules][count] = others[count];
    lists[modules][count] = async_builtin();
    const tni_registry_params params = {.builtins = lists[modules]};
    if (tni_registry_create(&params, &out->registry, &err) ||
        tni_platforms_create(out->registry, NULL, &out->set, &err) ||
        tni_platforms_sync(out->set, &err))
        fail_msg("%s", err.message);
}

void async_world_end(world *w)
{
    world_end(w);
    async_end();
}

void async_end(void)
{
    tni_mutex_lock(&queue_lock);
    queue_gates_open();
    queue_streams_end(-1);
    for (int32_t i = 0; i < ASYNC_DEVICES; i++) {
        give_up(i);
        queue_devices[i] = (queue_device){0};
        async_initialized[i] = false;
    }
    queue_gates_release();
    memset(&all, 0, sizeof all);
    async_capacity = FIRST_CAPACITY;
    async_sharing = false;
    async_ordering = false;
    tni_mutex_unlock(&queue_lock);
}

static int number_of(const char *function)
{
    for (int i = 0; function && i < FUNCTION_COUNT; i++) {
        if (strcmp(names[i], function) == 0)
            return i;
    }
    if (function)
        fail_msg("the row has no function %s", function);
    return ANY;
}

void async_fail(const char *function, long n, tn_status status)
{
    tni_mutex_lock(&queue_lock);
    all.fault = number_of(function);
    all.fault_left = n;
    all.fault_status = status;
    tni_mutex_unlock(&queue_lock);
}

bool async_heal(void)
{
    tni_mutex_lock(&queue_lock);
    bool happened = all.fault_left <= 0;
    all.fault_left = 0;
    tni_mutex_unlock(&queue_lock);
    return happened;
}

long async_calls(const char *function)
{
    int number = number_of(function);
    long count = 0;
    tni_mutex_lock(&queue_lock);
    for (int i = 0; i < FUNCTION_COUNT; i++)
        count += number == ANY || number == i ? all.calls[i] : 0;
    tni_mutex_unlock(&queue_lock);
    return count;
}

void async_lose(int32_t device, const char *cause)
{
    tni_mutex_lock(&queue_lock);
    queue_devices[device].lost = true;
    tn_text_fit(queue_devices[device].cause, sizeof queue_devices[device].cause, cause);
    queue_change_tell();
    tni_mutex_unlock(&queue_lock);
}

async_gate *async_gate_put(tn_stream *on)
{
    tn_error err = {0};
    async_gate *gate = queue_gate_create();
    const op pass = {.kind = OP_CALL, .call = queue_gate_pass, .user = gate};
    assert_non_null(gate);
    tni_mutex_lock(&queue_lock);
    if (queue(TN_OK, on->device->index, on->native, &pass, &err))
        fail_msg("no gate: %s", err.message);
    return gate;
}

async_counts async_held(void)
{
    tni_mutex_lock(&queue_lock);
    async_counts held = all.held;
    tni_mutex_unlock(&queue_lock);
    return held;
}

bool async_holds_nothing(void)
{
    async_counts held = async_held();
    bool nothing = !(held.streams || held.events || held.blocks || held.host_blocks || held.wrong);
    if (!nothing)
        print_message("async holds %d streams, %d events, %d blocks, %d of the host; %d wrong\n",
                      held.streams, held.events, held.blocks, held.host_blocks, held.wrong);
    return nothing;
}
