/* Events: creation, recording, waiting, timing. If the platform has events, its functions are
 * called; the other platforms use host events. */
#include "event.h"

#include "base/alloc.h"
#include "device/graph/graph.h"
#include "epoch.h"

static tn_status fail_null(const char *what, const char *where, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", what);
}

static tn_event *allocate_event(tn_device *device, uint32_t flags)
{
    tn_event *event = tni_alloc_zeroed(1, sizeof *event);
    if (!event)
        return NULL;
    event->device = device;
    event->flags = flags;
    event->epoch = tni_device_epoch(device);
    event->mark = &event->own;
    return event;
}

/* Checks that the module returned the event it claims to have made. */
static tn_status check_native(const tn_event *event, const tni_call *call, const char *where,
                              tn_status status, const tn_error *said, tn_error *err)
{
    status = tni_device_result_check(call, where, status, said, err);
    if (!status && !event->native)
        status = tn_fail(err, TN_INTERNAL, 0, where, "%s created an event but returned none",
                         event->device->id);
    return status;
}

static tn_status create_native(tn_event *event, const tni_call *call, const char *where,
                               tn_error *err)
{
    const tn_event_spec spec = {.struct_size = sizeof spec, .flags = event->flags};
    tn_error said = {0};
    if ((event->flags & TN_EVENT_INTERPROCESS) && !call->row->event_export)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "platform %s cannot share events with other processes",
                       event->device->platform->name);
    return check_native(
        event, call, where,
        call->row->event_create(call->self, call->device, &spec, &event->native, &said), &said,
        err);
}

static tn_status check_args(const tn_event_args *args, const char *where, tn_error *err)
{
    if (!TN_HAS(args, tn_event_args, interprocess))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->struct_size is too small; make args with TN_ARGS(event, ...)");
    const struct {
        const char *name;
        int32_t value, most;
    } fields[] = {
        {"enable_timing", args->enable_timing, 1},
        {"blocking", args->blocking, 1},
        {"interprocess", args->interprocess, 1},
        {"reserved", TN_HAS(args, tn_event_args, reserved) ? args->reserved : 0, 0},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].value < 0 || fields[i].value > fields[i].most)
            return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args->%s: expected 0%s, got %d",
                           fields[i].name, fields[i].most ? " or 1" : "", (int)fields[i].value);
    }
    return TN_OK;
}

static uint32_t flags_of(const tn_event_args *args)
{
    return (args->enable_timing ? TN_EVENT_TIMING : 0) | (args->blocking ? TN_EVENT_BLOCKING : 0) |
           (args->interprocess ? TN_EVENT_INTERPROCESS : 0);
}

tn_status tn_event_create(tn_device *device, const tn_event_args *args, tn_event **out,
                          tn_error *err)
{
    static const char where[] = "tn_event_create";
    tni_call call;
    if (!out)
        return fail_null("out", where, err);
    tn_status status = args ? check_args(args, where, err) : TN_OK;
    if (!status)
        status = tni_device_or_default(device, &device, err);
    if (!status)
        status = tni_device_open(device, where, &call, err);
    if (status)
        return status;
    tn_event *event = allocate_event(device, args ? flags_of(args) : 0);
    if (!event)
        return tni_no_memory(err, where, "an event");
    status = tni_row_has_events(call.row) ? create_native(event, &call, where, err)
                                          : tni_event_host_create(event, err);
    if (status)
        tni_release(event);
    else
        *out = event;
    return status;
}

/* As tni_device_open, for a call on the event. */
static tn_status open_event(const tn_event *event, const char *where, tni_call *out, tn_error *err)
{
    if (!event)
        return fail_null("the event", where, err);
    tn_status status = tni_device_open(event->device, where, out, err);
    return status ? status
                  : tni_device_epoch_check(event->device, event->epoch, "event", where, err);
}

/* A lost device is not called: the module's part of the event was lost with it. */
void tn_event_release(tn_event *event)
{
    tni_call call;
    if (!event)
        return;
    if (event->native && tni_device_open_to_return(event->device, &call) &&
        event->epoch == call.epoch)
        call.row->event_destroy(call.self, call.device, event->native);
    tni_event_host_end(event);
    tni_release(event);
}

tn_device *tn_event_device(const tn_event *event)
{
    return event ? event->device : NULL;
}

/* Whether there is a record to wait for. Other processes record the platform's interprocess events
 * without the knowledge of this one, so only the platform knows about those. */
static bool is_recorded(const tn_event *event)
{
    return (event->native && (event->flags & TN_EVENT_INTERPROCESS)) ||
           atomic_load_explicit(&event->mark->recorded, memory_order_acquire) > 0;
}

tn_status tn_event_record(tn_event *event, tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_event_record";
    tni_call call;
    tn_status status = open_event(event, where, &call, err);
    if (!status)
        status = tni_stream_for(stream, event->device, where, &stream, err);
    if (status)
        return status;
    if (!event->native) {
        tni_event_host_record(event);
        return TN_OK;
    }
    tn_error said = {0};
    const bool captured = tni_capture_is_on(stream);
    status = tni_device_result_check(
        &call, where,
        call.row->event_record(call.self, call.device, event->native, stream->native, &said), &said,
        err);
    if (!status) {
        atomic_store_explicit(&event->captured, captured, memory_order_relaxed);
        atomic_fetch_add_explicit(&event->mark->recorded, 1, memory_order_release);
    }
    return status;
}

static bool is_captured(const tn_event *event)
{
    return atomic_load_explicit(&event->captured, memory_order_relaxed);
}

/* Fails for queries about work before a record that is part of a capture. */
static tn_status refuse_captured(const tn_event *event, const char *where, tn_error *err)
{
    if (!is_captured(event))
        return TN_OK;
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "this event of %s was last recorded on a stream that the program captures, "
                   "so it belongs to that graph; record it again outside the capture",
                   event->device->id);
}

/* A stream that waits for an event of a capture becomes part of that capture. A captured stream may
 * wait for no other event. */
static tn_status join_capture(const tn_event *event, tn_stream *stream, const char *where,
                              tn_error *err)
{
    if (!is_captured(event))
        return tni_capture_reject(stream, where, "the event was recorded outside the capture", err);
    tni_capture_show(stream);
    return TN_OK;
}

/* Within a platform the stream waits, otherwise the host does. A loss is recorded for the device
 * that reports itself lost: it may be the event's. */
static tn_status wait_for(tn_event *event, tn_stream *stream, const char *where, tn_error *err)
{
    tni_call call, of_event;
    tn_status status = tni_stream_open(stream, where, &call, err);
    if (!status)
        status = open_event(event, where, &of_event, err);
    if (status || !event->native || !is_recorded(event))
        return status;
    status = join_capture(event, stream, where, err);
    if (!status && stream->device->offer != event->device->offer)
        return tn_event_synchronize(event, err);
    if (status)
        return status;
    tn_error said = {0};
    return tni_device_result_check_either(
        &call, &of_event, where,
        call.row->stream_wait(call.self, call.device, stream->native, event->native, &said), &said,
        err);
}

tn_status tn_event_wait(tn_event *event, tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_event_wait";
    if (!event)
        return fail_null("the event", where, err);
    return wait_for(event, stream ? stream : tn_stream_current(event->device), where, err);
}

tn_status tn_stream_wait_event(tn_stream *stream, tn_event *event, tn_error *err)
{
    return wait_for(event, stream, "tn_stream_wait_event", err);
}

/* Whether the last record has completed; host events complete at once. */
static tn_status query_event(const tn_event *event, const tni_call *call, const char *where,
                             int32_t *out_done, tn_error *err)
{
    int32_t done = 1;
    tn_status status = refuse_captured(event, where, err);
    if (!status && event->native && is_recorded(event)) {
        tn_error said = {0};
        done = 0;
        status = tni_device_result_check(
            call, where,
            call->row->event_query(call->self, call->device, event->native, &done, &said), &said,
            err);
    }
    if (!status)
        *out_done = done != 0;
    return status;
}

tn_status tn_event_query(tn_event *event, int32_t *out_done, tn_error *err)
{
    static const char where[] = "tn_event_query";
    tni_call call;
    if (!out_done)
        return fail_null("out_done", where, err);
    tn_status status = open_event(event, where, &call, err);
    return status ? status : query_event(event, &call, where, out_done, err);
}

tn_status tn_event_synchronize(tn_event *event, tn_error *err)
{
    static const char where[] = "tn_event_synchronize";
    tni_call call;
    tn_status status = open_event(event, where, &call, err);
    if (!status)
        status = refuse_captured(event, where, err);
    if (status || !event->native || !is_recorded(event))
        return status;
    tn_error said = {0};
    return tni_device_result_check(
        &call, where, call.row->event_synchronize(call.self, call.device, event->native, &said),
        &said, err);
}

/* The checks that need no platform, in the documented order. */
static tn_status check_pair(const tn_event *start, const tn_event *stop, const char *where,
                            tn_error *err)
{
    if (!start || !stop)
        return fail_null(start ? "stop" : "start", where, err);
    if (start->device != stop->device)
        return tn_fail(err, TN_INCOMPATIBLE, 0, where,
                       "the events belong to %s and %s; elapsed time needs two events of one "
                       "device",
                       start->device->id, stop->device->id);
    if (!(start->flags & stop->flags & TN_EVENT_TIMING))
        return tn_fail(err, TN_UNSUPPORTED, 0, where, "%s was created without enable_timing",
                       start->flags & TN_EVENT_TIMING ? "stop" : "start");
    if (!is_recorded(start) || !is_recorded(stop))
        return tn_fail(err, TN_NOT_FOUND, 0, where, "%s was never recorded",
                       is_recorded(start) ? "stop" : "start");
    return TN_OK;
}

static tn_status check_done(const tn_event *event, const char *name, const tni_call *call,
                            const char *where, tn_error *err)
{
    int32_t done = 0;
    tn_status status = query_event(event, call, where, &done, err);
    if (!status && !done)
        status = tn_fail(err, TN_NOT_READY, 0, where,
                         "%s is recorded on %s, but its stream has not reached it; "
                         "tn_event_synchronize waits for it",
                         name, event->device->id);
    return status;
}

/* Neither infinite nor NaN. */
static bool is_number(double ms)
{
    return ms - ms == 0;
}

tn_status tn_event_elapsed_time(tn_event *start, tn_event *stop, double *out_ms, tn_error *err)
{
    static const char where[] = "tn_event_elapsed_time";
    tni_call call;
    tn_error said = {0};
    double ms = 0;
    if (!out_ms)
        return fail_null("out_ms", where, err);
    tn_status status = check_pair(start, stop, where, err);
    if (!status)
        status = open_event(start, where, &call, err);
    if (!status)
        status = open_event(stop, where, &call, err);
    if (!status)
        status = check_done(start, "start", &call, where, err);
    if (!status)
        status = check_done(stop, "stop", &call, where, err);
    if (!status && !start->native)
        ms = tni_event_host_elapsed(start, stop);
    else if (!status)
        status =
            tni_device_result_check(&call, where,
                                    call.row->event_elapsed(call.self, call.device, start->native,
                                                            stop->native, &ms, &said),
                                    &said, err);
    if (!status && !is_number(ms))
        status = tn_fail(err, TN_INTERNAL, 0, where,
                         "%s returned an elapsed time that is not a number", start->device->id);
    if (!status)
        *out_ms = ms;
    return status;
}

tn_status tn_event_export(tn_event *event, tn_event_handle *out, tn_error *err)
{
    static const char where[] = "tn_event_export";
    tni_call call;
    tn_error said = {0};
    tn_event_handle handle = {{0}};
    if (!out)
        return fail_null("out", where, err);
    tn_status status = open_event(event, where, &call, err);
    if (!status && !(event->flags & TN_EVENT_INTERPROCESS))
        status = tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                         "the event was created without interprocess");
    if (status)
        return status;
    if (event->native)
        status = tni_device_result_check(
            &call, where,
            call.row->event_export(call.self, call.device, event->native, &handle, &said), &said,
            err);
    else
        tni_event_host_export(event, &handle);
    if (!status)
        *out = handle;
    return status;
}

static tn_status import_native(tn_event *event, const tni_call *call, const tn_event_handle *handle,
                               const char *where, tn_error *err)
{
    tn_error said = {0};
    if (!call->row->event_import)
        return tn_fail(err, TN_UNSUPPORTED, 0, where,
                       "platform %s cannot open events of other processes",
                       event->device->platform->name);
    return check_native(
        event, call, where,
        call->row->event_import(call->self, call->device, handle, &event->native, &said), &said,
        err);
}

tn_status tn_event_import(tn_device *device, const tn_event_handle *handle, tn_event **out,
                          tn_error *err)
{
    static const char where[] = "tn_event_import";
    tni_call call;
    if (!handle || !out)
        return fail_null(handle ? "out" : "the handle", where, err);
    tn_status status = tni_device_or_default(device, &device, err);
    if (!status)
        status = tni_device_open(device, where, &call, err);
    if (status)
        return status;
    tn_event *event = allocate_event(device, TN_EVENT_INTERPROCESS);
    if (!event)
        return tni_no_memory(err, where, "an event");
    status = tni_row_has_events(call.row) ? import_native(event, &call, handle, where, err)
                                          : tni_event_host_import(event, handle, err);
    if (status)
        tni_release(event);
    else
        *out = event;
    return status;
}
