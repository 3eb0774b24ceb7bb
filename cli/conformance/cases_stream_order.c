/* Order of work on streams. Every case queues more work than a device finishes at once, so that a
 * missing wait shows in the data. */
#include "block.h"
#include "host.h"
#include "suite.h"

enum { BIG = 4 << 20, STEPS = 24 };

/* Each step overwrites the previous step's data and copies out its own part. */
static bool order(trial *t)
{
    block work, taken;
    tn_stream *stream = NULL;
    size_t part = BIG / STEPS;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, t->device, BIG, &taken) ||
        !trial_stream(t, t->device, &stream))
        return false;
    for (size_t i = 0; i < STEPS; i++) {
        if (!block_fill(t, &work, 0, BIG, trial_bits(t), 8, stream) ||
            !block_copy(t, &work, i * part, &taken, i * part, part, stream))
            return false;
    }
    return DO(t, tn_stream_synchronize(stream, &t->err)) && block_check(t, &taken, "copied data");
}

/* Copies into host memory, which is checked without waiting for anything else. */
static bool synchronize(trial *t)
{
    block work, here;
    tn_stream *stream = NULL;
    int32_t done = 77;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, NULL, BIG, &here) ||
        !trial_stream(t, t->device, &stream))
        return false;
    return block_fill_often(t, &work, STEPS, stream) &&
           block_copy(t, &work, 0, &here, 0, BIG, stream) &&
           DO(t, tn_stream_synchronize(stream, &t->err)) &&
           block_check(t, &here, "data after waiting for the stream") &&
           DO(t, tn_stream_query(stream, &done, &t->err)) && EQUAL(t, done, 1);
}

/* Polls until the stream is done. Fails if it never is, or if it reports completion too early. */
static bool query(trial *t)
{
    block work, here;
    tn_stream *stream = NULL;
    int32_t done = 0;
    double until = host_seconds() + t->on->patience / 2;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, NULL, BIG, &here) ||
        !trial_stream(t, t->device, &stream) || !block_fill_often(t, &work, STEPS, stream) ||
        !block_copy(t, &work, 0, &here, 0, BIG, stream))
        return false;
    while (!done && host_seconds() < until) {
        if (!DO(t, tn_stream_query(stream, &done, &t->err)))
            return false;
        if (!done)
            host_pause(0.001);
    }
    if (!done)
        return trial_fail(t, "tn_stream_query reports after %g s that the work is not done",
                          t->on->patience / 2);
    return block_check(t, &here, "data when the stream was idle");
}

/* Queues work on one stream, then on another that `join` makes wait for the first. */
static bool one_after_another(trial *t, bool (*join)(trial *t, tn_stream *first, tn_stream *second))
{
    block work, taken;
    tn_stream *first = NULL, *second = NULL;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, t->device, BIG, &taken) ||
        !trial_stream(t, t->device, &first) || !trial_stream(t, t->device, &second))
        return false;
    return block_fill_often(t, &work, STEPS, first) && join(t, first, second) &&
           block_copy(t, &work, 0, &taken, 0, BIG, second) &&
           DO(t, tn_stream_synchronize(second, &t->err)) &&
           block_check(t, &taken, "data copied by the second stream");
}

static bool join_by_event(trial *t, tn_stream *first, tn_stream *second)
{
    tn_event *event = NULL;
    return trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_event_record(event, first, &t->err)) &&
           DO(t, tn_stream_wait_event(second, event, &t->err));
}

static bool join_by_event_wait(trial *t, tn_stream *first, tn_stream *second)
{
    tn_event *event = NULL;
    return trial_event(t, t->device, NULL, &event) &&
           DO(t, tn_event_record(event, first, &t->err)) &&
           DO(t, tn_event_wait(event, second, &t->err));
}

static bool join_by_stream(trial *t, tn_stream *first, tn_stream *second)
{
    return DO(t, tn_stream_wait_stream(second, first, &t->err));
}

static bool wait_event(trial *t)
{
    return one_after_another(t, join_by_event);
}

static bool event_wait(trial *t)
{
    return one_after_another(t, join_by_event_wait);
}

static bool wait_stream(trial *t)
{
    return one_after_another(t, join_by_stream);
}

static bool wait_never_recorded(trial *t)
{
    tn_stream *stream = NULL;
    tn_event *event = NULL;
    block work;
    return trial_stream(t, t->device, &stream) && trial_event(t, t->device, NULL, &event) &&
           block_make(t, t->device, 1000, &work) &&
           DO(t, tn_stream_wait_event(stream, event, &t->err)) &&
           block_fill(t, &work, 0, 1000, trial_bits(t), 1, stream) &&
           DO(t, tn_stream_synchronize(stream, &t->err)) && block_check(t, &work, "filled memory");
}

/* A wait is for the latest record before it: recording the event again later does not delay a
 * stream that already waits for the first record. */
static bool wait_is_for_the_latest(trial *t)
{
    tn_stream *first = NULL, *second = NULL;
    tn_event *event = NULL;
    block work, taken;
    return trial_stream(t, t->device, &first) && trial_stream(t, t->device, &second) &&
           trial_event(t, t->device, NULL, &event) && block_make(t, t->device, BIG, &work) &&
           block_make(t, t->device, BIG, &taken) &&
           block_fill(t, &work, 0, BIG, trial_bits(t), 4, first) &&
           DO(t, tn_event_record(event, first, &t->err)) &&
           DO(t, tn_stream_wait_event(second, event, &t->err)) &&
           block_copy(t, &work, 0, &taken, 0, BIG, second) &&
           DO(t, tn_event_record(event, second, &t->err)) &&
           DO(t, tn_stream_wait_event(first, event, &t->err)) &&
           block_fill(t, &work, 0, BIG, trial_bits(t), 4, first) &&
           DO(t, tn_stream_synchronize(first, &t->err)) &&
           block_check(t, &work, "result of the last fill") &&
           block_check(t, &taken, "data copied between the two fills");
}

/* Records the event again on an idle stream, where it completes at once. */
static bool join_and_record_again(trial *t, tn_stream *first, tn_stream *second)
{
    tn_event *event = NULL;
    tn_stream *third = NULL;
    return trial_event(t, t->device, NULL, &event) && trial_stream(t, t->device, &third) &&
           DO(t, tn_event_record(event, first, &t->err)) &&
           DO(t, tn_stream_wait_event(second, event, &t->err)) &&
           DO(t, tn_event_record(event, third, &t->err));
}

static bool wait_is_for_its_record(trial *t)
{
    return one_after_another(t, join_and_record_again);
}

/* Releases the event before the work it marks is done. */
static bool join_and_release(trial *t, tn_stream *first, tn_stream *second)
{
    tn_event *event = NULL;
    if (!DO(t, tn_event_create(t->device, NULL, &event, &t->err)))
        return false;
    tn_status status = tn_event_record(event, first, &t->err);
    if (!status)
        status = tn_stream_wait_event(second, event, &t->err);
    tn_event_release(event);
    return DO(t, status);
}

static bool wait_outlives_event(trial *t)
{
    return one_after_another(t, join_and_release);
}

static bool wait_across_devices(trial *t)
{
    block work, taken;
    tn_stream *first = NULL, *second = NULL;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, t->second, BIG, &taken) ||
        !trial_stream(t, t->device, &first) || !trial_stream(t, t->second, &second))
        return false;
    return block_fill_often(t, &work, STEPS, first) && join_by_event(t, first, second) &&
           block_copy(t, &work, 0, &taken, 0, BIG, second) &&
           DO(t, tn_stream_synchronize(second, &t->err)) &&
           block_check(t, &taken, "data copied by the other device");
}

enum { THREADS = 4, TURNS = 40, SHARE = 10007 };

typedef struct crowd {
    tn_device *device;
    tn_stream *stream;
    unsigned char *there; /* THREADS * SHARE bytes on the device */
    unsigned char *here;
    tn_error errors[THREADS];
    tn_status statuses[THREADS];
} crowd;

static void queue_own_share(void *user, size_t index)
{
    crowd *c = user;
    tn_error *err = &c->errors[index];
    unsigned char *there = c->there + index * SHARE, *here = c->here + index * SHARE;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < TURNS && !status; i++) {
        status = tn_memory_fill(TN_ARGS(memory_fill, .device = c->device, .to = there,
                                        .bytes = SHARE, .pattern = i + index, .stream = c->stream),
                                err);
    }
    if (!status)
        status = tn_memory_copy(TN_ARGS(memory_copy, .to = here, .from_device = c->device,
                                        .from = there, .bytes = SHARE, .stream = c->stream),
                                err);
    if (!status)
        status = tn_stream_synchronize(c->stream, err);
    c->statuses[index] = status;
}

static bool threads_on_one_stream(trial *t)
{
    crowd c = {.device = t->device};
    void *there = NULL, *here = NULL;
    if (!trial_memory(t, t->device, THREADS * SHARE, &there) ||
        !trial_host(t, THREADS * SHARE, &here) || !trial_stream(t, t->device, &c.stream))
        return false;
    c.there = there;
    c.here = here;
    memset(here, 0xA5, THREADS * SHARE);
    if (!host_run_together(THREADS, queue_own_share, &c))
        return trial_fail(t, "the system could not create a thread");
    for (size_t i = 0; i < THREADS; i++) {
        unsigned char expected[SHARE];
        memset(expected, (int)(TURNS - 1 + i), SHARE);
        if (c.statuses[i])
            t->err = c.errors[i];
        if (!trial_did(t, c.statuses[i], "a thread's work on the stream(") ||
            !bytes_match(t, c.here + i * SHARE, expected, SHARE, "data written by one thread"))
            return false;
    }
    return true;
}

/* Without a stream argument, work goes to the thread's current stream. */
static bool current_is_used(trial *t)
{
    block work, here;
    tn_stream *stream = NULL;
    if (!block_make(t, t->device, BIG, &work) || !block_make(t, NULL, BIG, &here) ||
        !trial_stream(t, t->device, &stream) || !DO(t, tn_stream_set(stream, &t->err)))
        return false;
    return block_fill_often(t, &work, STEPS, NULL) &&
           block_copy(t, &work, 0, &here, 0, BIG, NULL) &&
           DO(t, tn_stream_synchronize(stream, &t->err)) &&
           block_check(t, &here, "data copied by the current stream") &&
           DO(t, tn_stream_set(tn_stream_default(t->device), &t->err));
}

const suite_case cases_stream_order[] = {
    {"stream.order", "work on one stream runs in the order it was queued", order, 0},
    {"stream.synchronize", "synchronizing a stream waits for all queued work", synchronize, 0},
    {"stream.query", "a stream is idle only after its work is done", query, 0},
    {"stream.wait-event", "work queued after a wait runs after the event", wait_event, 0},
    {"stream.wait-stream", "work queued after a wait runs after the other stream's work",
     wait_stream, 0},
    {"stream.wait-never-recorded", "an event that was never recorded blocks nothing",
     wait_never_recorded, 0},
    {"stream.wait-latest", "a wait is for the latest record before it", wait_is_for_the_latest, 0},
    {"stream.wait-record", "a later record does not affect an earlier wait", wait_is_for_its_record,
     0},
    {"stream.wait-outlives-event", "a queued wait stays valid after its event is released",
     wait_outlives_event, 0},
    {"stream.wait-across-devices", "streams of two devices can wait for each other",
     wait_across_devices, NEED_TWO_DEVICES},
    {"stream.threads", "several threads may share a stream", threads_on_one_stream, 0},
    {"stream.current-is-used", "work without a stream goes to the current one", current_is_used, 0},
    {"event.wait", "an event makes a stream wait", event_wait, 0},
    {0},
};
