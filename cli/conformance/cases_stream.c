/* Stream objects: created, current, scoped, wrapped. */
#include "host.h"
#include "suite.h"

static bool create(trial *t)
{
    tn_stream *a = NULL, *b = NULL;
    int32_t done = 77;
    return trial_stream(t, t->device, &a) && trial_stream(t, NULL, &b) && HOLDS(t, a != b) &&
           SAME(t, tn_stream_device(a), t->device) && SAME(t, tn_stream_device(b), t->device) &&
           EQUAL(t, tn_stream_priority(a), TN_PRIORITY_DEFAULT) &&
           DO(t, tn_stream_synchronize(a, &t->err)) && DO(t, tn_stream_query(a, &done, &t->err)) &&
           EQUAL(t, done, 1);
}

static void release_stream(void *owner, void *what)
{
    (void)owner;
    tn_stream_release(what);
}

static bool priority(trial *t)
{
    const int32_t asked[] = {TN_PRIORITY_LOW, TN_PRIORITY_DEFAULT, TN_PRIORITY_HIGH, 1000, -1000};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        tn_stream *stream = NULL;
        if (!DO(t, tn_stream_create(t->device, TN_ARGS(stream, .priority = asked[i]), &stream,
                                    &t->err)) ||
            !trial_keep(t, release_stream, NULL, stream))
            return false;
        int32_t has = tn_stream_priority(stream);
        if (!HOLDS(t, has >= TN_PRIORITY_LOW && has <= TN_PRIORITY_HIGH) ||
            !HOLDS(t, asked[i] != TN_PRIORITY_DEFAULT || has == TN_PRIORITY_DEFAULT) ||
            !DO(t, tn_stream_synchronize(stream, &t->err)))
            return false;
    }
    return true;
}

static bool many(trial *t)
{
    enum { MANY = 64 };
    tn_stream *streams[MANY];
    for (size_t i = 0; i < MANY; i++) {
        if (!trial_stream(t, t->device, &streams[i]))
            return false;
    }
    for (size_t i = 0; i < MANY; i++) {
        for (size_t j = 0; j < i; j++) {
            if (!HOLDS(t, streams[i] != streams[j]))
                return false;
        }
    }
    return true;
}

static bool standard(trial *t)
{
    tn_stream *stream = tn_stream_default(t->device);
    int32_t done = 77;
    return HOLDS(t, stream != NULL) && SAME(t, tn_stream_default(t->device), stream) &&
           SAME(t, tn_stream_device(stream), t->device) && EQUAL(t, tn_stream_raw(stream), 0) &&
           DO(t, tn_stream_synchronize(stream, &t->err)) &&
           DO(t, tn_stream_query(stream, &done, &t->err)) && EQUAL(t, done, 1);
}

static bool current(trial *t)
{
    tn_stream *stream = NULL;
    return SAME(t, tn_stream_current(t->device), tn_stream_default(t->device)) &&
           trial_stream(t, t->device, &stream) && DO(t, tn_stream_set(stream, &t->err)) &&
           SAME(t, tn_stream_current(t->device), stream) &&
           EQUAL(t, tn_stream_raw_current(t->device), tn_stream_raw(stream)) &&
           DO(t, tn_stream_set(tn_stream_default(t->device), &t->err)) &&
           SAME(t, tn_stream_current(t->device), tn_stream_default(t->device)) &&
           EQUAL(t, tn_stream_raw_current(t->device), 0);
}

static bool set_null(trial *t)
{
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_stream_set(NULL, &t->err)) &&
           SAME(t, tn_stream_current(t->device), tn_stream_default(t->device));
}

typedef struct view {
    tn_device *device;
    tn_stream *first;
    tn_stream *own;
    tn_stream *then;
    tn_status status;
} view;

static void read_in_thread(void *user, size_t index)
{
    view *v = user;
    (void)index;
    v->first = tn_stream_current(v->device);
    v->status = tn_stream_create(v->device, NULL, &v->own, NULL);
    if (!v->status)
        v->status = tn_stream_set(v->own, NULL);
    v->then = tn_stream_current(v->device);
    tn_stream_release(v->own);
}

static bool current_per_thread(trial *t)
{
    tn_stream *stream = NULL;
    view other = {.device = t->device};
    if (!trial_stream(t, t->device, &stream) || !DO(t, tn_stream_set(stream, &t->err)))
        return false;
    if (!host_run_together(1, read_in_thread, &other))
        return trial_fail(t, "the system could not create a thread");
    bool held = EQUAL(t, other.status, TN_OK) &&
                SAME(t, other.first, tn_stream_default(t->device)) &&
                SAME(t, other.then, other.own) && SAME(t, tn_stream_current(t->device), stream);
    return DO(t, tn_stream_set(tn_stream_default(t->device), &t->err)) && held;
}

static bool current_per_device(trial *t)
{
    tn_stream *stream = NULL;
    return trial_stream(t, t->second, &stream) && DO(t, tn_stream_set(stream, &t->err)) &&
           SAME(t, tn_stream_current(t->second), stream) &&
           SAME(t, tn_stream_current(t->device), tn_stream_default(t->device)) &&
           EQUAL(t, tn_device_current(t->platform), 0) &&
           DO(t, tn_stream_set(tn_stream_default(t->second), &t->err));
}

/* A thread also holds a reference to its current stream. */
static bool held_while_current(trial *t)
{
    tn_stream *stream = NULL;
    int32_t done = 77;
    if (!DO(t, tn_stream_create(t->device, NULL, &stream, &t->err)))
        return false;
    tn_status status = tn_stream_set(stream, &t->err);
    tn_stream_release(stream);
    return DO(t, status) && SAME(t, tn_stream_current(t->device), stream) &&
           DO(t, tn_stream_synchronize(tn_stream_current(t->device), &t->err)) &&
           DO(t, tn_stream_query(tn_stream_current(t->device), &done, &t->err)) &&
           EQUAL(t, done, 1) && DO(t, tn_stream_set(tn_stream_default(t->device), &t->err));
}

static bool guard(trial *t)
{
    tn_device *device = t->second ? t->second : t->device;
    tn_stream *stream = NULL, *inner_stream = NULL;
    tn_stream_guard outer = {0}, inner = {0};
    if (!trial_stream(t, device, &stream) || !trial_stream(t, device, &inner_stream))
        return false;
    bool held = DO(t, tn_stream_guard_enter(&outer, stream, &t->err)) &&
                SAME(t, tn_stream_current(device), stream) &&
                EQUAL(t, tn_device_current(t->platform), tn_device_index(device)) &&
                DO(t, tn_stream_guard_enter(&inner, inner_stream, &t->err)) &&
                SAME(t, tn_stream_current(device), inner_stream);
    tn_stream_guard_leave(&inner);
    held = held && SAME(t, tn_stream_current(device), stream);
    tn_stream_guard_leave(&outer);
    return held && SAME(t, tn_stream_current(device), tn_stream_default(device)) &&
           EQUAL(t, tn_device_current(t->platform), 0);
}

static bool guard_after_change(trial *t)
{
    tn_stream *stream = NULL, *other = NULL;
    tn_stream_guard scope = {0};
    if (!trial_stream(t, t->device, &stream) || !trial_stream(t, t->device, &other))
        return false;
    bool held = DO(t, tn_stream_guard_enter(&scope, stream, &t->err)) &&
                DO(t, tn_stream_set(other, &t->err));
    tn_stream_guard_leave(&scope);
    return held && SAME(t, tn_stream_current(t->device), tn_stream_default(t->device));
}

static bool guard_twice(trial *t)
{
    tn_stream *stream = NULL;
    tn_stream_guard scope = {0};
    if (!trial_stream(t, t->device, &stream) ||
        !DO(t, tn_stream_guard_enter(&scope, stream, &t->err)))
        return false;
    bool held = REFUSES(t, TN_BUSY, tn_stream_guard_enter(&scope, stream, &t->err));
    tn_stream_guard_leave(&scope);
    return held && SAME(t, tn_stream_current(t->device), tn_stream_default(t->device));
}

static bool guard_of_nothing(trial *t)
{
    tn_stream_guard scope = {0};
    tn_stream_guard_leave(NULL);
    tn_stream_guard_leave(&scope);
    tn_stream_release(NULL);
    return SAME(t, tn_stream_current(t->device), tn_stream_default(t->device));
}

/* If streams have no native handle, there is nothing to wrap. */
static bool wrap(trial *t)
{
    tn_stream *own = NULL, *wrapped = NULL;
    int32_t done = 77;
    if (!trial_stream(t, t->device, &own))
        return false;
    uintptr_t raw = tn_stream_raw(own);
    if (raw == 0)
        return REFUSES(t, TN_UNSUPPORTED, tn_stream_wrap(t->device, &done, &wrapped, &t->err)) &&
               SAME(t, wrapped, NULL);
    return DO(t, tn_stream_wrap(t->device, (void *)raw, &wrapped, &t->err)) &&
           trial_keep(t, release_stream, NULL, wrapped) && EQUAL(t, tn_stream_raw(wrapped), raw) &&
           SAME(t, tn_stream_device(wrapped), t->device) &&
           DO(t, tn_stream_synchronize(wrapped, &t->err)) &&
           DO(t, tn_stream_query(wrapped, &done, &t->err)) && EQUAL(t, done, 1);
}

static bool refusals(trial *t)
{
    tn_stream *stream = NULL;
    int32_t done = 77;
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_stream_query(NULL, &done, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_stream_synchronize(NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_stream_create(t->device, NULL, NULL, &t->err)) &&
           trial_stream(t, t->device, &stream) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_stream_wait_event(stream, NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_stream_wait_stream(stream, NULL, &t->err)) &&
           EQUAL(t, done, 77);
}

const suite_case cases_stream[] = {
    {"stream.create", "a new stream belongs to its device and is idle", create, 0},
    {"stream.priority", "every priority is accepted; out-of-range values saturate", priority, 0},
    {"stream.many", "64 streams are distinct", many, 0},
    {"stream.default", "the default stream always exists, and its raw handle is 0", standard, 0},
    {"stream.current", "the default stream is current until another is set", current, 0},
    {"stream.set-null", "NULL cannot be made current", set_null, 0},
    {"stream.current-per-thread", "each thread has its own current stream", current_per_thread, 0},
    {"stream.current-per-device",
     "each device has its own current stream; setting one does not change the device",
     current_per_device, NEED_TWO_DEVICES},
    {"stream.held", "a stream stays alive while it is current in a thread", held_while_current, 0},
    {"stream.guard", "a guard makes stream and device current, nests, and restores", guard, 0},
    {"stream.guard-after-change", "leaving restores the stream even if it was changed inside",
     guard_after_change, 0},
    {"stream.guard-twice", "a guard cannot be entered twice", guard_twice, 0},
    {"stream.guard-nothing", "a guard that was not entered changes nothing", guard_of_nothing, 0},
    {"stream.wrap", "a raw handle can be wrapped, if the platform has one", wrap, 0},
    {"stream.refusals", "NULL is an error", refusals, 0},
    {0},
};
