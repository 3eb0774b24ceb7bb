#include "async_queue.h"

#include "os/clock.h"

#include <stdlib.h>

struct async_gate {
    async_gate *next;
    bool open;
};

tni_mutex queue_lock = TNI_MUTEX_INIT;
queue_device queue_devices[ASYNC_DEVICES];

static tni_condition change = TNI_CONDITION_INIT;
static stream *streams; /* with a thread: closing ones and standard ones included */
static event *events;
static async_gate *gates;

void queue_change_wait(void)
{
    tni_condition_wait(&change, &queue_lock);
}

void queue_change_tell(void)
{
    tni_condition_wake_all(&change);
}

static void copy_rows(const tn_copy_job *job)
{
    for (uint64_t row = 0; row < job->rows; row++)
        memcpy((char *)job->to + row * job->to_pitch,
               (const char *)job->from + row * job->from_pitch, (size_t)job->bytes);
}

static void fill(const tn_fill_job *job)
{
    for (uint64_t at = 0; at < job->bytes; at += job->pattern_bytes)
        memcpy((char *)job->to + at, &job->pattern, job->pattern_bytes);
}

static bool waits(const stream *s, const op *o)
{
    return o->event->reached < o->turn && !queue_devices[s->device].lost &&
           !queue_devices[o->event->device].lost;
}

/* The lock is open while it copies, fills or calls. */
static void perform(const stream *s, op *o)
{
    if (o->kind == OP_WAIT) {
        while (waits(s, o))
            queue_change_wait();
    } else if (o->kind == OP_RECORD) {
        if (o->turn > o->event->reached) {
            o->event->reached = o->turn;
            o->event->ns = tni_clock_ns();
        }
    } else {
        tni_mutex_unlock(&queue_lock);
        if (o->kind == OP_COPY)
            copy_rows(&o->copy);
        else if (o->kind == OP_FILL)
            fill(&o->fill);
        else
            o->call(o->user);
        tni_mutex_lock(&queue_lock);
    }
}

/* Releases it when nobody names it. */
static void event_settle(event *e)
{
    event **link = &events;
    if (e->owners > 0 || e->ops > 0)
        return;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    free(e);
}

static void op_release(op *o)
{
    if (o->event) {
        o->event->ops--;
        event_settle(o->event);
    }
    free(o);
}

static op *take(stream *s)
{
    op *o = s->first;
    s->first = o->next;
    if (!s->first)
        s->last = &s->first;
    return o;
}

static void *work(void *user)
{
    stream *s = user, **link = &streams;
    tni_mutex_lock(&queue_lock);
    while (s->first || !s->closing) {
        if (!s->first) {
            queue_change_wait();
            continue;
        }
        op *o = take(s);
        s->busy = true;
        if (!queue_devices[s->device].lost)
            perform(s, o);
        s->busy = false;
        op_release(o);
        queue_change_tell();
    }
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    free(s);
    queue_change_tell();
    tni_mutex_unlock(&queue_lock);
    return NULL;
}

stream *queue_stream_start(int32_t device)
{
    pthread_t thread;
    pthread_attr_t detached;
    stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->device = device;
    s->last = &s->first;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &detached, work, s);
    pthread_attr_destroy(&detached);
    if (error) {
        free(s);
        return NULL;
    }
    s->next = streams;
    streams = s;
    return s;
}

void queue_stream_close(stream *s)
{
    s->closing = true;
    queue_change_tell();
}

int queue_streams_end(int32_t device)
{
    int open = 0;
    bool any = true;
    while (any) {
        any = false;
        for (stream *s = streams; s; s = s->next) {
            if (device >= 0 && s->device != device)
                continue;
            open += !s->closing && s != queue_devices[s->device].standard;
            any = s->closing = true;
        }
        queue_change_tell();
        if (any)
            queue_change_wait();
    }
    for (int32_t i = 0; i < ASYNC_DEVICES; i++) {
        if (device < 0 || i == device)
            queue_devices[i].standard = NULL;
    }
    return open;
}

bool queue_is_idle(int32_t device, const stream *s)
{
    if (!s)
        s = queue_devices[device].standard;
    return !s || queue_devices[device].lost || (!s->first && !s->busy);
}

bool queue_device_is_idle(int32_t device)
{
    for (const stream *s = streams; s; s = s->next) {
        if (s->device == device && !queue_is_idle(device, s))
            return false;
    }
    return true;
}

tn_status queue_add(int32_t device, stream *s, const op *what, tn_error *err)
{
    op *o = malloc(sizeof *o);
    if (!s)
        s = queue_devices[device].standard;
    if (!s && o)
        s = queue_devices[device].standard = queue_stream_start(device);
    if (!s || !o) {
        free(o);
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "async", "the host has no memory");
    }
    *o = *what;
    o->next = NULL;
    if (o->event)
        o->event->ops++;
    *s->last = o;
    s->last = &o->next;
    queue_change_tell();
    return TN_OK;
}

event *queue_event_create(int32_t device, uint32_t flags)
{
    static uint64_t number;
    event *e = malloc(sizeof *e);
    if (!e)
        return NULL;
    *e = (event){.next = events, .device = device, .flags = flags, .owners = 1, .number = ++number};
    events = e;
    return e;
}

event *queue_event_find(int32_t device, uint64_t number)
{
    event *e = events;
    while (e && (e->number != number || e->device != device))
        e = e->next;
    if (e)
        e->owners++;
    return e;
}

void queue_event_disown(event *e)
{
    e->owners--;
    event_settle(e);
}

int queue_events_give_up(int32_t device)
{
    int owners = 0;
    for (event *e = events, *next; e; e = next) {
        next = e->next;
        if (e->device != device)
            continue;
        owners += e->owners;
        e->owners = 0;
        e->reached = e->asked; /* nothing waits for it any more */
        event_settle(e);
    }
    queue_change_tell();
    return owners;
}

async_gate *queue_gate_create(void)
{
    async_gate *gate = calloc(1, sizeof *gate);
    if (gate) {
        tni_mutex_lock(&queue_lock);
        gate->next = gates;
        gates = gate;
        tni_mutex_unlock(&queue_lock);
    }
    return gate;
}

void queue_gate_pass(void *user)
{
    const async_gate *gate = user;
    tni_mutex_lock(&queue_lock);
    while (!gate->open)
        queue_change_wait();
    tni_mutex_unlock(&queue_lock);
}

void async_gate_open(async_gate *gate)
{
    tni_mutex_lock(&queue_lock);
    gate->open = true;
    queue_change_tell();
    tni_mutex_unlock(&queue_lock);
}

void queue_gates_open(void)
{
    for (async_gate *gate = gates; gate; gate = gate->next)
        gate->open = true;
    queue_change_tell();
}

void queue_gates_release(void)
{
    while (gates) {
        async_gate *gate = gates;
        gates = gate->next;
        free(gate);
    }
}
