#include "memory_spaces.h"

enum { GUARD = 64, GUARD_BYTE = 0xCD };

typedef struct block {
    struct block *next;
    unsigned char *bytes; /* the guard before it is at -GUARD */
    uint64_t size;
    int32_t device; /* -1: pinned memory of the host */
} block;

typedef struct queued {
    struct queued *next;
    bool is_fill;
    tn_copy_job copy;
    tn_fill_job fill;
} queued;

typedef struct queue {
    queued *first, **last;
} queue;

typedef struct space {
    uintptr_t mask;
    const char *name;
    block *blocks;
    queue standard[SPACE_DEVICES];
    bool lost[SPACE_DEVICES];
    uint64_t in_use[SPACE_DEVICES];
    space_counts counts;
} space;

/* Bits 48 to 55 are the same in every address of a program. */
static space all[SPACES] = {{.mask = (uintptr_t)0x5a << 48, .name = "north"},
                            {.mask = (uintptr_t)0xa5 << 48, .name = "south"}};
static tni_mutex lock = TNI_MUTEX_INIT; /* of everything here */
static long fault_left;
static tn_status fault_status;
static bool fault_fired;
_Atomic uint64_t space_capacity = UINT64_C(1) << 30;
_Atomic bool space_apart;
_Atomic bool space_stuck;
void *_Atomic space_gives;
space_call *_Atomic space_meanwhile;

unsigned char *space_bytes(int number, const void *address)
{
    uintptr_t at = (uintptr_t)address ^ all[number].mask;
    unsigned char *bytes;
    memcpy(&bytes, &at, sizeof bytes);
    return bytes;
}

static void *outside(const space *s, const unsigned char *bytes)
{
    uintptr_t at = (uintptr_t)bytes ^ s->mask;
    void *address;
    memcpy(&address, &at, sizeof address);
    return address;
}

void space_fail(long n, tn_status status)
{
    tni_mutex_lock(&lock);
    fault_left = n;
    fault_status = status;
    fault_fired = false;
    tni_mutex_unlock(&lock);
}

bool space_heal(void)
{
    tni_mutex_lock(&lock);
    fault_left = 0;
    bool fired = fault_fired;
    tni_mutex_unlock(&lock);
    return fired;
}

/* Takes the lock; leave() lets it go. What a call that can fail begins with. */
static tn_status enter(space *s, int32_t device, tn_error *err)
{
    tni_mutex_lock(&lock);
    if (fault_left > 0 && --fault_left == 0) {
        fault_fired = true;
        if (fault_status == TN_DEVICE_LOST && device >= 0)
            s->lost[device] = true;
        return tn_fail(err, fault_status, 7, s->name, "made to fail");
    }
    if (device >= 0 && s->lost[device])
        return tn_fail(err, TN_DEVICE_LOST, 0, s->name, "%s:%d fell off the bus", s->name,
                       (int)device);
    return TN_OK;
}

static tn_status leave(tn_status status)
{
    tni_mutex_unlock(&lock);
    return status;
}

static tn_status leave_late(tn_status status)
{
    space_call *call = atomic_exchange(&space_meanwhile, NULL);
    tni_mutex_unlock(&lock);
    if (call)
        call();
    return status;
}

static tn_device *resetting;

static void reset_it(void)
{
    assert_int_equal(tn_device_reset(resetting, NULL), TN_OK);
}

void space_reset_meanwhile(tn_device *device)
{
    resetting = device;
    atomic_store(&space_meanwhile, reset_it);
}

void space_lose(int number, int32_t device)
{
    tni_mutex_lock(&lock);
    all[number].lost[device] = true;
    tni_mutex_unlock(&lock);
}

static block *add_block(space *s, int32_t device, uint64_t bytes)
{
    block *b = calloc(1, sizeof *b);
    size_t size = ((size_t)bytes + 2 * GUARD + 63) / 64 * 64;
    unsigned char *memory = b ? aligned_alloc(64, size) : NULL;
    if (!memory) {
        free(b);
        return NULL;
    }
    memset(memory, GUARD_BYTE, size);
    *b = (block){.next = s->blocks, .bytes = memory + GUARD, .size = bytes, .device = device};
    s->blocks = b;
    return b;
}

static bool is_guarded(const block *b)
{
    for (int i = 0; i < GUARD; i++) {
        if (b->bytes[i - GUARD] != GUARD_BYTE || b->bytes[b->size + (uint64_t)i] != GUARD_BYTE)
            return false;
    }
    return true;
}

static void drop_block(space *s, block **at)
{
    block *b = *at;
    *at = b->next;
    s->counts.wrong += !is_guarded(b);
    if (b->device >= 0) {
        s->counts.blocks--;
        s->in_use[b->device] -= b->size;
        s->counts.in_use -= b->size;
    } else {
        s->counts.host_blocks--;
    }
    free(b->bytes - GUARD);
    free(b);
}

static block **find_block(space *s, int32_t device, const unsigned char *bytes)
{
    block **at = &s->blocks;
    while (*at && ((*at)->bytes != bytes || (*at)->device != device))
        at = &(*at)->next;
    return at;
}

static tn_status take(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, device, err);
    s->counts.allocs++;
    s->counts.last_bytes = bytes;
    if (status)
        return leave(status);
    if (atomic_load(&space_gives)) {
        *out = atomic_load(&space_gives);
        return leave(TN_OK);
    }
    uint64_t left = atomic_load(&space_capacity) - s->in_use[device];
    block *b = bytes <= left ? add_block(s, device, bytes) : NULL;
    if (!b)
        return leave(tn_fail(err, TN_OUT_OF_MEMORY, 2, s->name, "no room"));
    s->counts.blocks++;
    s->in_use[device] += bytes;
    s->counts.in_use += bytes;
    *out = outside(s, b->bytes);
    return leave_late(TN_OK);
}

static void give(void *self, int32_t device, void *memory)
{
    space *s = self;
    tni_mutex_lock(&lock);
    block **at = find_block(s, device, space_bytes((int)(s - all), memory));
    s->counts.frees++;
    if (*at && !s->lost[device])
        drop_block(s, at);
    else
        s->counts.wrong += memory != atomic_load(&space_gives);
    tni_mutex_unlock(&lock);
}

/* Where a side of a copy really is; NULL when not all of it is within one block. */
static unsigned char *reach(space *s, int32_t device, const void *address, uint64_t span)
{
    if (device < 0)
        return space_bytes((int)(s - all), outside(s, address));
    const unsigned char *bytes = space_bytes((int)(s - all), address);
    for (block *b = s->blocks; b; b = b->next) {
        uintptr_t offset = (uintptr_t)bytes - (uintptr_t)b->bytes;
        if (b->device == device && offset <= b->size && span <= b->size - offset)
            return b->bytes + offset;
    }
    s->counts.wrong++;
    return NULL;
}

static tn_status run_copy(space *s, const tn_copy_job *job)
{
    uint64_t more = job->rows - 1;
    unsigned char *to = reach(s, job->to_device, job->to, more * job->to_pitch + job->bytes);
    const unsigned char *from =
        reach(s, job->from_device, job->from, more * job->from_pitch + job->bytes);
    for (uint64_t row = 0; to && from && row < job->rows; row++)
        memcpy(to + row * job->to_pitch, from + row * job->from_pitch, (size_t)job->bytes);
    return to && from ? TN_OK : TN_INVALID_ARGUMENT;
}

static tn_status run_fill(space *s, const tn_fill_job *job)
{
    unsigned char *to = reach(s, job->device, job->to, job->bytes);
    for (uint64_t i = 0; to && i < job->bytes; i++)
        to[i] = (unsigned char)(job->pattern >> i % job->pattern_bytes * 8);
    return to ? TN_OK : TN_INVALID_ARGUMENT;
}

static void push(space *s, int32_t device, void *stream, const queued *what)
{
    queue *q = stream ? stream : &s->standard[device > 0];
    queued *added = malloc(sizeof *added);
    if (!added)
        abort();
    *added = *what;
    added->next = NULL;
    if (!q->first)
        q->last = &q->first;
    *q->last = added;
    q->last = &added->next;
    s->counts.queued++;
}

static void run_queue(space *s, queue *q, bool lost)
{
    while (q->first) {
        queued *first = q->first;
        q->first = first->next;
        if (!lost)
            (void)(first->is_fill ? run_fill(s, &first->fill) : run_copy(s, &first->copy));
        free(first);
        s->counts.queued--;
    }
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    space *s = self;
    int32_t device = job->to_device >= 0 ? job->to_device : job->from_device;
    bool across =
        job->to_device >= 0 && job->from_device >= 0 && job->to_device != job->from_device;
    tn_status status = enter(s, device, err);
    s->counts.copies++;
    if (!status && across && s->lost[job->from_device])
        status = tn_fail(err, TN_DEVICE_LOST, 0, s->name, "%s:%d fell off the bus", s->name,
                         (int)job->from_device);
    if (!status && across && atomic_load(&space_apart))
        status = tn_fail(err, TN_UNSUPPORTED, 0, s->name, "nothing joins these two");
    if (!status && job->struct_size != sizeof *job)
        status = TN_INVALID_ARGUMENT;
    if (!status && s == &all[NORTH])
        status = run_copy(s, job);
    else if (!status)
        push(s, device, job->stream, &(queued){.copy = *job});
    return leave_late(status);
}

static tn_status fill(void *self, const tn_fill_job *job, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, job->device, err);
    s->counts.fills++;
    if (!status && ((uintptr_t)job->to % job->pattern_bytes || job->bytes % job->pattern_bytes))
        status = TN_INVALID_ARGUMENT;
    if (!status)
        push(s, job->device, job->stream, &(queued){.is_fill = true, .fill = *job});
    return leave(status);
}

static tn_status host_take(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, device, err);
    block *b = status ? NULL : add_block(s, -1, bytes);
    if (!status && !b)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, s->name, "no host memory");
    if (b) {
        s->counts.host_blocks++;
        *out = b->bytes;
    }
    return leave_late(status);
}

static void host_give(void *self, int32_t device, void *memory)
{
    space *s = self;
    tni_mutex_lock(&lock);
    block **at = find_block(s, -1, memory);
    if (*at && !s->lost[device])
        drop_block(s, at);
    else
        s->counts.wrong++;
    tni_mutex_unlock(&lock);
}

static tn_status stream_create(void *self, int32_t device, const tn_stream_spec *spec, void **out,
                               tn_error *err)
{
    (void)spec;
    tn_status status = enter(self, device, err);
    queue *q = status ? NULL : calloc(1, sizeof *q);
    if (!status && !q)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, "south", "no stream");
    if (!status)
        *out = q;
    return leave(status);
}

static void stream_destroy(void *self, int32_t device, void *stream)
{
    space *s = self;
    tni_mutex_lock(&lock);
    run_queue(s, stream, s->lost[device]);
    free(stream);
    tni_mutex_unlock(&lock);
}

static tn_status stream_query(void *self, int32_t device, void *stream, int32_t *out, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, device, err);
    const queue *q = stream ? stream : &s->standard[device > 0];
    if (!status)
        *out = !q->first;
    return leave(status);
}

static tn_status stream_synchronize(void *self, int32_t device, void *stream, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, device, err);
    if (!status && atomic_load(&space_stuck))
        status = tn_fail(err, TN_IO, 0, s->name, "cannot wait");
    s->counts.waits++;
    if (!status || status == TN_DEVICE_LOST)
        run_queue(s, stream ? stream : &s->standard[device > 0], status == TN_DEVICE_LOST);
    return leave(status);
}

static tn_status stream_wait(void *self, int32_t device, void *stream, void *event, tn_error *err)
{
    (void)stream, (void)event;
    return leave(enter(self, device, err));
}

static tn_status device_synchronize(void *self, int32_t device, tn_error *err)
{
    return stream_synchronize(self, device, NULL, err);
}

/* Where there are streams there are events; none of them is used here. */
static tn_status no_event_create(void *self, int32_t device, const tn_event_spec *spec, void **out,
                                 tn_error *err)
{
    (void)self, (void)device, (void)spec, (void)out;
    return tn_fail(err, TN_UNSUPPORTED, 0, "south", "no events here");
}

static void no_event_destroy(void *self, int32_t device, void *event)
{
    (void)self, (void)device, (void)event;
}

static tn_status no_event_record(void *self, int32_t device, void *event, void *stream,
                                 tn_error *err)
{
    (void)stream;
    return no_event_create(self, device, NULL, &event, err);
}

static tn_status no_event_query(void *self, int32_t device, void *event, int32_t *out,
                                tn_error *err)
{
    (void)out;
    return no_event_create(self, device, NULL, &event, err);
}

static tn_status no_event_synchronize(void *self, int32_t device, void *event, tn_error *err)
{
    return no_event_create(self, device, NULL, &event, err);
}

static tn_status no_event_elapsed(void *self, int32_t device, void *start, void *stop,
                                  double *out_ms, tn_error *err)
{
    (void)stop, (void)out_ms;
    return no_event_create(self, device, NULL, &start, err);
}

static tn_status device_memory(void *self, int32_t device, tn_device_memory *out, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, device, err);
    int64_t capacity = (int64_t)atomic_load(&space_capacity);
    if (!status) {
        out->total = tn_fact_of(capacity, "south");
        out->available = tn_fact_of(capacity - (int64_t)s->in_use[device], "south");
        out->in_use = tn_fact_of((int64_t)s->in_use[device], "south");
    }
    return leave(status);
}

static tn_status device_properties(void *self, int32_t device, tn_device_properties *out,
                                   tn_error *err)
{
    (void)self, (void)device, (void)err;
    out->known = TN_DEVICE_KNOWS(memory_bytes);
    out->memory_bytes = (int64_t)atomic_load(&space_capacity);
    return TN_OK;
}

static void drop_device(space *s, int32_t device)
{
    run_queue(s, &s->standard[device], true);
    for (block **at = &s->blocks; *at;) {
        if ((*at)->device == device || (*at)->device < 0)
            drop_block(s, at);
        else
            at = &(*at)->next;
    }
}

/* Pinned memory of both devices goes. */
static tn_status device_reset(void *self, int32_t device, tn_error *err)
{
    space *s = self;
    tn_status status = enter(s, -1, err);
    if (!status) {
        s->lost[device] = false;
        drop_device(s, device);
    }
    return leave(status);
}

static tn_status probe_north(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)err;
    *out_self = &all[NORTH];
    *out = SPACE_DEVICES;
    return TN_OK;
}

static tn_status probe_south(const tn_host *host, void **out_self, int32_t *out, tn_error *err)
{
    (void)host, (void)err;
    *out_self = &all[SOUTH];
    *out = SPACE_DEVICES;
    return TN_OK;
}

static const tn_platform_row north_row = {.struct_size = sizeof north_row,
                                          .name = "north",
                                          .kind = TN_PLATFORM_OOT,
                                          .probe = probe_north,
                                          .memory_alloc = take,
                                          .memory_free = give,
                                          .copy = copy};
static const tn_platform_row south_row = {.struct_size = sizeof south_row,
                                          .name = "south",
                                          .kind = TN_PLATFORM_OOT,
                                          .probe = probe_south,
                                          .memory_alloc = take,
                                          .memory_free = give,
                                          .copy = copy,
                                          .device_properties = device_properties,
                                          .device_memory = device_memory,
                                          .stream_create = stream_create,
                                          .stream_destroy = stream_destroy,
                                          .stream_query = stream_query,
                                          .stream_synchronize = stream_synchronize,
                                          .stream_wait = stream_wait,
                                          .device_synchronize = device_synchronize,
                                          .event_create = no_event_create,
                                          .event_destroy = no_event_destroy,
                                          .event_record = no_event_record,
                                          .event_query = no_event_query,
                                          .event_synchronize = no_event_synchronize,
                                          .event_elapsed = no_event_elapsed,
                                          .fill = fill,
                                          .host_alloc = host_take,
                                          .host_free = host_give,
                                          .device_reset = device_reset};
static const tn_platform_row *const rows[] = {&north_row, &south_row, NULL};
static const tn_module module = {.struct_size = sizeof module,
                                 TN_MODULE_ABI,
                                 .name = "spaces",
                                 .version = "1",
                                 .platforms = rows};

static tn_status spaces_entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

void spaces_make(spaces *out)
{
    static tni_builtin builtins[3];
    const tni_registry_params params = {.builtins = builtins};
    const struct {
        const char *name;
        tn_device **to;
    } wanted[] = {{"cpu:0", &out->cpu},
                  {"north:0", &out->north[0]},
                  {"north:1", &out->north[1]},
                  {"south:0", &out->south[0]},
                  {"south:1", &out->south[1]}};
    tn_error err = {0};
    memset(out, 0, sizeof *out);
    builtins[0] = tni_builtins[0];
    builtins[1] = (tni_builtin){"spaces", spaces_entry};
    tn_status status = tni_registry_create(&params, &out->registry, &err);
    if (!status)
        status = tni_platforms_create(out->registry, NULL, &out->set, &err);
    for (size_t i = 0; !status && i < sizeof wanted / sizeof wanted[0]; i++)
        status = tni_devices_get(out->set, wanted[i].name, wanted[i].to, &err);
    if (status)
        fail_msg("%s", err.message);
}

void spaces_end(spaces *s)
{
    tni_platforms_destroy(s->set);
    tni_registry_destroy(s->registry);
    for (int i = 0; i < SPACES; i++) {
        space *at = &all[i];
        for (int32_t device = 0; device < SPACE_DEVICES; device++) {
            if (at->lost[device])
                drop_device(at, device);
        }
        memset(at->lost, 0, sizeof at->lost);
        at->counts.allocs = at->counts.frees = at->counts.copies = at->counts.fills = 0;
        at->counts.waits = 0;
    }
    atomic_store(&space_capacity, UINT64_C(1) << 30);
    atomic_store(&space_apart, false);
    atomic_store(&space_stuck, false);
    atomic_store(&space_gives, NULL);
    memset(s, 0, sizeof *s);
}

void spaces_keep(tn_device *device, bool keeps)
{
    tn_memory_trim(device);
    tni_memory_of(device)->keeps = keeps;
}

space_counts space_look(int number)
{
    tni_mutex_lock(&lock);
    space_counts counts = all[number].counts;
    for (const block *b = all[number].blocks; b; b = b->next)
        counts.wrong += !is_guarded(b);
    tni_mutex_unlock(&lock);
    return counts;
}

void space_forgive(int number)
{
    tni_mutex_lock(&lock);
    all[number].counts.wrong = 0;
    tni_mutex_unlock(&lock);
}

bool spaces_are_empty(void)
{
    bool empty = true;
    for (int i = 0; i < SPACES; i++) {
        space_counts now = space_look(i);
        if (now.blocks || now.host_blocks || now.queued || now.wrong || now.in_use) {
            print_message("%s: %d blocks, %d of the host, %d queued, %d wrong\n", all[i].name,
                          now.blocks, now.host_blocks, now.queued, now.wrong);
            empty = false;
        }
    }
    return empty;
}
