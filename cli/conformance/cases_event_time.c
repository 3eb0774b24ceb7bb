/* Elapsed time between events: the order of the checks, the status of each, and a plausible
 * result. */
#include "block.h"
#include "host.h"
#include "suite.h"

enum { BIG = 4 << 20, STEPS = 16 };

static bool timed(trial *t, tn_event **out)
{
    return trial_event(t, t->device, TN_ARGS(event, .enable_timing = 1), out);
}

static bool recorded(trial *t, tn_event **out)
{
    return timed(t, out) && DO(t, tn_event_record(*out, NULL, &t->err)) &&
           DO(t, tn_event_synchronize(*out, &t->err));
}

static bool untouched(trial *t, double ms)
{
    return ms == -77.0 || trial_fail(t, "a refused tn_event_elapsed_time wrote %g", ms);
}

static bool null(trial *t)
{
    tn_event *event = NULL;
    double ms = -77.0;
    return recorded(t, &event) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_elapsed_time(NULL, event, &ms, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_elapsed_time(event, NULL, &ms, &t->err)) &&
           REFUSES(t, TN_INVALID_ARGUMENT, tn_event_elapsed_time(event, event, NULL, &t->err)) &&
           untouched(t, ms);
}

/* The events also lack timing and are not recorded: the device check comes first. */
static bool other_device(trial *t)
{
    tn_event *here = NULL, *there = NULL;
    double ms = -77.0;
    return trial_event(t, t->device, NULL, &here) && trial_event(t, t->second, NULL, &there) &&
           REFUSES(t, TN_INCOMPATIBLE, tn_event_elapsed_time(here, there, &ms, &t->err)) &&
           untouched(t, ms);
}

/* The same with another platform. There always is one, except on the cpu itself. */
static bool other_platform(trial *t)
{
    tn_device *cpu = NULL;
    tn_event *here = NULL, *there = NULL;
    double ms = -77.0;
    if (tn_platform_is_cpu(t->platform))
        return trial_unavailable(t, "needs a platform besides the cpu");
    return DO(t, tn_device_get("cpu:0", &cpu, &t->err)) && trial_event(t, t->device, NULL, &here) &&
           trial_event(t, cpu, NULL, &there) &&
           REFUSES(t, TN_INCOMPATIBLE, tn_event_elapsed_time(here, there, &ms, &t->err)) &&
           REFUSES(t, TN_INCOMPATIBLE, tn_event_elapsed_time(there, here, &ms, &t->err)) &&
           untouched(t, ms);
}

static bool no_timing(trial *t)
{
    tn_event *plain = NULL, *good = NULL;
    double ms = -77.0;
    return trial_event(t, t->device, NULL, &plain) && timed(t, &good) &&
           REFUSES(t, TN_UNSUPPORTED, tn_event_elapsed_time(plain, good, &ms, &t->err)) &&
           REFUSES(t, TN_UNSUPPORTED, tn_event_elapsed_time(good, plain, &ms, &t->err)) &&
           untouched(t, ms);
}

static bool not_recorded(trial *t)
{
    tn_event *never = NULL, *good = NULL;
    double ms = -77.0;
    return timed(t, &never) && recorded(t, &good) &&
           REFUSES(t, TN_NOT_FOUND, tn_event_elapsed_time(never, good, &ms, &t->err)) &&
           REFUSES(t, TN_NOT_FOUND, tn_event_elapsed_time(good, never, &ms, &t->err)) &&
           untouched(t, ms);
}

/* A pending event gives TN_NOT_READY; a complete one gives the time. The device decides whether an
 * event is pending: the answer must agree with its queries before and after. */
static bool not_ready(trial *t)
{
    tn_event *start = NULL, *stop = NULL;
    tn_stream *stream = NULL;
    block work;
    int32_t before = 77, after = 77;
    double ms = -77.0;
    if (!timed(t, &start) || !timed(t, &stop) || !trial_stream(t, t->device, &stream) ||
        !block_make(t, t->device, BIG, &work) || !DO(t, tn_event_record(start, stream, &t->err)) ||
        !block_fill_often(t, &work, STEPS, stream) ||
        !DO(t, tn_event_record(stop, stream, &t->err)) ||
        !DO(t, tn_event_query(stop, &before, &t->err)))
        return false;
    trial_clear(t);
    tn_status status = tn_event_elapsed_time(start, stop, &ms, &t->err);
    if (!DO(t, tn_event_query(stop, &after, &t->err)))
        return false;
    if (status != TN_OK && status != TN_NOT_READY)
        return trial_fail(t, "tn_event_elapsed_time gave %s, expected ok or not-ready",
                          tn_status_name(status));
    if ((status == TN_NOT_READY && before == 1) || (status == TN_OK && after == 0))
        return trial_fail(t, "tn_event_elapsed_time gave %s for an event that is %s",
                          tn_status_name(status), status ? "complete" : "pending");
    return DO(t, tn_event_synchronize(stop, &t->err)) &&
           DO(t, tn_event_elapsed_time(start, stop, &ms, &t->err)) && HOLDS(t, ms >= 0);
}

/* The time between two events is at most the host time around them, within the error of two clocks.
 * Swapping the events negates it. */
static bool elapsed(trial *t)
{
    tn_event *start = NULL, *stop = NULL;
    tn_stream *stream = NULL;
    block work;
    double ms = -77.0, back = -77.0;
    if (!timed(t, &start) || !timed(t, &stop) || !trial_stream(t, t->device, &stream) ||
        !block_make(t, t->device, BIG, &work) || !DO(t, tn_device_synchronize(t->device, &t->err)))
        return false;
    double began = host_seconds();
    if (!DO(t, tn_event_record(start, stream, &t->err)) ||
        !block_fill_often(t, &work, STEPS, stream) ||
        !DO(t, tn_event_record(stop, stream, &t->err)) ||
        !DO(t, tn_event_synchronize(stop, &t->err)))
        return false;
    double around = (host_seconds() - began) * 1e3;
    if (!DO(t, tn_event_elapsed_time(start, stop, &ms, &t->err)) ||
        !DO(t, tn_event_elapsed_time(stop, start, &back, &t->err)))
        return false;
    if (!(ms >= 0) || ms > around * 1.02 + 1)
        return trial_fail(t,
                          "tn_event_elapsed_time is %g ms, expected 0 to %g, the time that passed",
                          ms, around);
    return back <= 0 && back >= -ms - 0.01 && back <= -ms + 0.01
               ? true
               : trial_fail(t, "tn_event_elapsed_time is %g ms backwards, expected %g", back, -ms);
}

/* Time that the host waits between two records counts as elapsed. */
static bool advances(trial *t)
{
    tn_event *start = NULL, *stop = NULL;
    double ms = -77.0;
    if (!recorded(t, &start))
        return false;
    double began = host_seconds();
    host_pause(0.02);
    double waited = (host_seconds() - began) * 1e3;
    if (!recorded(t, &stop) || !DO(t, tn_event_elapsed_time(start, stop, &ms, &t->err)))
        return false;
    return ms >= waited * 0.98 - 1 ||
           trial_fail(t, "tn_event_elapsed_time is %g ms, expected at least %g, the time waited",
                      ms, waited);
}

const suite_case cases_event_time[] = {
    {"event.elapsed", "elapsed time is in milliseconds, negative in reverse order", elapsed, 0},
    {"event.elapsed.advances", "elapsed time includes the time waited", advances, 0},
    {"event.elapsed.null", "NULL gives invalid-argument", null, 0},
    {"event.elapsed.other-device", "events of two devices give incompatible", other_device,
     NEED_TWO_DEVICES},
    {"event.elapsed.other-platform", "events of two platforms give incompatible", other_platform,
     0},
    {"event.elapsed.no-timing", "events without timing give unsupported", no_timing, 0},
    {"event.elapsed.not-recorded", "an event that was not recorded gives not-found", not_recorded,
     0},
    {"event.elapsed.not-ready", "an event that is not complete gives not-ready until it is",
     not_ready, 0},
    {0},
};
