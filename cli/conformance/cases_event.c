/* Events: points in a stream's work. */
#include "block.h"
#include "host.h"
#include "suite.h"

enum { BIG = 4 << 20, STEPS = 16 };

static bool is_done(trial *t, tn_event *event)
{
    int32_t done = 77;
    return DO(t, tn_event_query(event, &done, &t->err)) && EQUAL(t, done, 1);
}

static bool create(trial *t)
{
    tn_event *event = NULL, *of_current = NULL;
    return trial_event(t, t->device, NULL, &event) && trial_event(t, NULL, NULL, &of_current) &&
           SAME(t, tn_event_device(event), t->device) &&
           SAME(t, tn_event_device(of_current), t->device) && is_done(t, event) &&
           DO(t, tn_event_synchronize(event, &t->err)) &&
           DO(t, tn_event_wait(event, NULL, &t->err)) && (tn_event_release(NULL), true);
}

static bool flags(trial *t)
{
    for (int32_t bits = 0; bits < 4; bits++) {
        tn_event *event = NULL;
        if (!trial_event(t, t->device,
                         TN_ARGS(event, .enable_timing = bits & 1, .blocking = bits >> 1),
                         &event) ||
            !DO(t, tn_event_record(event, NULL, &t->err)) ||
            !DO(t, tn_event_synchronize(event, &t->err)) || !is_done(t, event))
            return false;
    }
    return true;
}

/* Queues large work on `stream` and copies its result into host memory. */
static bool queue_work(trial *t, tn_stream *stream, block *out_here)
{
    block work;
    return block_make(t, t->device, BIG, &work) && block_make(t, NULL, BIG, out_here) &&
           block_fill_often(t, &work, STEPS, stream) &&
           block_copy(t, &work, 0, out_here, 0, BIG, stream);
}

static bool synchronize(trial *t)
{
    block here;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    return trial_stream(t, t->device, &stream) && trial_event(t, t->device, NULL, &event) &&
           queue_work(t, stream, &here) && DO(t, tn_event_record(event, stream, &t->err)) &&
           DO(t, tn_event_synchronize(event, &t->err)) &&
           block_check(t, &here, "data after waiting for the event") && is_done(t, event);
}

static bool blocking(trial *t)
{
    block here;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    return trial_stream(t, t->device, &stream) &&
           trial_event(t, t->device, TN_ARGS(event, .blocking = 1), &event) &&
           queue_work(t, stream, &here) && DO(t, tn_event_record(event, stream, &t->err)) &&
           DO(t, tn_event_synchronize(event, &t->err)) &&
           block_check(t, &here, "data after waiting for the event");
}

static bool query(trial *t)
{
    block here;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    int32_t done = 0;
    double until = host_seconds() + t->on->patience / 2;
    if (!trial_stream(t, t->device, &stream) || !trial_event(t, t->device, NULL, &event) ||
        !queue_work(t, stream, &here) || !DO(t, tn_event_record(event, stream, &t->err)))
        return false;
    while (!done && host_seconds() < until) {
        if (!DO(t, tn_event_query(event, &done, &t->err)))
            return false;
        if (!done)
            host_pause(0.001);
    }
    if (!done)
        return trial_fail(t, "tn_event_query reports after %g s that the work is not done",
                          t->on->patience / 2);
    return block_check(t, &here, "data when the event was complete");
}

/* Only the latest record counts. */
static bool record_again(trial *t)
{
    block first, second;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    return trial_stream(t, t->device, &stream) && trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_event_record(event, stream, &t->err)) && queue_work(t, stream, &first) &&
           DO(t, tn_event_record(event, stream, &t->err)) && queue_work(t, stream, &second) &&
           DO(t, tn_event_record(event, stream, &t->err)) &&
           DO(t, tn_event_synchronize(event, &t->err)) &&
           block_check(t, &first, "data after waiting for the first records") &&
           block_check(t, &second, "data after waiting for the latest record");
}

static bool record_on_another(trial *t)
{
    block here;
    tn_stream *first = NULL, *second = NULL;
    tn_event *event = NULL;
    return trial_stream(t, t->device, &first) && trial_stream(t, t->device, &second) &&
           trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_event_record(event, first, &t->err)) && queue_work(t, second, &here) &&
           DO(t, tn_event_record(event, second, &t->err)) &&
           DO(t, tn_event_synchronize(event, &t->err)) &&
           block_check(t, &here, "data after waiting for the latest record");
}

static bool record_current(trial *t)
{
    block here;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    return trial_stream(t, t->device, &stream) && trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_stream_set(stream, &t->err)) && queue_work(t, stream, &here) &&
           DO(t, tn_event_record(event, NULL, &t->err)) &&
           DO(t, tn_event_synchronize(event, &t->err)) &&
           block_check(t, &here, "data after waiting for the event") &&
           DO(t, tn_stream_set(tn_stream_default(t->device), &t->err));
}

static bool other_device(trial *t)
{
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    return trial_stream(t, t->second, &stream) && trial_event(t, t->device, NULL, &event) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_record(event, stream, &t->err)) &&
           is_done(t, event);
}

/* The event stays valid after its stream is released. */
static bool outlives_stream(trial *t)
{
    block here;
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    if (!trial_event(t, t->device, NULL, &event) ||
        !DO(t, tn_stream_create(t->device, NULL, &stream, &t->err)))
        return false;
    bool held = queue_work(t, stream, &here) && DO(t, tn_event_record(event, stream, &t->err));
    tn_stream_release(stream);
    return held && DO(t, tn_event_synchronize(event, &t->err)) &&
           block_check(t, &here, "data after waiting for the event");
}

/* All waiting threads wake. */
typedef struct waiters {
    tn_event *event;
    tn_status statuses[4];
} waiters;

static void wait_for_it(void *user, size_t index)
{
    waiters *w = user;
    w->statuses[index] = tn_event_synchronize(w->event, NULL);
}

static bool many_wait(trial *t)
{
    block here;
    tn_stream *stream = NULL;
    waiters w = {0};
    if (!trial_stream(t, t->device, &stream) || !trial_event(t, t->device, NULL, &w.event) ||
        !queue_work(t, stream, &here) || !DO(t, tn_event_record(w.event, stream, &t->err)))
        return false;
    if (!host_run_together(4, wait_for_it, &w))
        return trial_fail(t, "the system could not create a thread");
    return EQUAL(t, w.statuses[0], TN_OK) && EQUAL(t, w.statuses[1], TN_OK) &&
           EQUAL(t, w.statuses[2], TN_OK) && EQUAL(t, w.statuses[3], TN_OK) &&
           block_check(t, &here, "data after all threads waited");
}

static bool refusals(trial *t)
{
    int32_t done = 77;
    return REFUSES(t, TN_INVALID_ARGUMENT, tn_event_record(NULL, NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_wait(NULL, NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_query(NULL, &done, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_synchronize(NULL, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_create(t->device, NULL, NULL, &t->err)) &&
           EQUAL(t, done, 77);
}

static bool interprocess(trial *t)
{
    tn_event *event = NULL, *plain = NULL;
    tn_event_handle handle;
    memset(&handle, 0, sizeof handle);
    if (!trial_event(t, t->device, NULL, &plain))
        return false;
    trial_clear(t);
    tn_status status = tn_event_export(plain, &handle, &t->err);
    if (status == TN_OK)
        return trial_fail(t, "tn_event_export of an event without interprocess gave ok");
    return trial_event(t, t->device, TN_ARGS(event, .interprocess = 1), &event) &&
           DO(t, tn_event_record(event, NULL, &t->err)) &&
           DO(t, tn_event_export(event, &handle, &t->err)) &&
           DO(t, tn_event_synchronize(event, &t->err)) && is_done(t, event);
}

const suite_case cases_event[] = {
    {"event.create", "an event that was never recorded is complete and blocks nothing", create, 0},
    {"event.flags", "events with any flags can be recorded", flags, 0},
    {"event.synchronize", "waiting for an event waits for the work queued before it", synchronize,
     0},
    {"event.blocking", "a blocking event waits too", blocking, 0},
    {"event.query", "an event is complete only after its work is done", query, 0},
    {"event.record-again", "the latest record counts", record_again, 0},
    {"event.record-elsewhere", "an event may be recorded again on another stream",
     record_on_another, 0},
    {"event.record-current", "without a stream, an event is recorded on the current one",
     record_current, 0},
    {"event.other-device", "a stream of another device is an error", other_device,
     NEED_TWO_DEVICES},
    {"event.outlives-stream", "an event outlives the stream it was recorded on", outlives_stream,
     0},
    {"event.many-wait", "several threads may wait for one event", many_wait, 0},
    {"event.refusals", "NULL is an error", refusals, 0},
    {"event.interprocess", "an event created with interprocess can be exported, another cannot",
     interprocess, 0},
    {0},
};
