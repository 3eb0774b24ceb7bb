/* Streams: creating, wrapping, releasing, querying, waiting. On platforms without streams a stream
 * is only a handle: all work on it is complete when the call returns. */
#include "base/alloc.h"
#include "current.h"
#include "device/graph/graph.h"
#include "epoch.h"
#include "scratch.h"
#include "trail.h"

static tn_status fail_null(const char *what, const char *where, tn_error *err)
{
    return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL", what);
}

/* As tni_stream_open, for a call that queries the progress of the stream. */
static tn_status open_for_query(tn_stream *stream, const char *where, tni_call *out, tn_error *err)
{
    tn_status status = tni_stream_open(stream, where, out, err);
    return status ? status
                  : tni_capture_reject(stream, where,
                                       "captured work does not run before the capture ends", err);
}

static tn_status create_native(const tn_device *device, const tni_call *call, int32_t priority,
                               const char *where, void **out, tn_error *err)
{
    const tn_stream_spec spec = {.struct_size = sizeof spec, .priority = priority};
    tn_error said = {0};
    void *native = NULL;
    tn_status status = tni_device_result_check(
        call, where, call->row->stream_create(call->self, call->device, &spec, &native, &said),
        &said, err);
    if (!status && !native)
        status = tn_fail(err, TN_INTERNAL, 0, where, "%s created a stream but returned none",
                         device->id);
    if (!status)
        *out = native;
    return status;
}

static int32_t nearest_priority(int32_t priority)
{
    return priority < TN_PRIORITY_LOW    ? TN_PRIORITY_LOW
           : priority > TN_PRIORITY_HIGH ? TN_PRIORITY_HIGH
                                         : priority;
}

tn_status tn_stream_create(tn_device *device, const tn_stream_args *args, tn_stream **out,
                           tn_error *err)
{
    static const char where[] = "tn_stream_create";
    tni_call call;
    if (!out)
        return fail_null("out", where, err);
    if (args && !TN_HAS(args, tn_stream_args, priority))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "args->struct_size is too small; make args with TN_ARGS(stream, ...)");
    if (args && TN_HAS(args, tn_stream_args, reserved) && args->reserved)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "args->reserved: expected 0, got %d",
                       (int)args->reserved);
    int32_t priority = nearest_priority(args ? args->priority : TN_PRIORITY_DEFAULT);
    tn_status status = tni_device_or_default(device, &device, err);
    if (!status)
        status = tni_device_open(device, where, &call, err);
    if (status)
        return status;
    tn_stream *stream = tni_stream_allocate(device, TNI_STREAM_OWN, priority);
    if (!stream)
        return tni_no_memory(err, where, "a stream");
    if (tni_row_has_streams(call.row))
        status = create_native(device, &call, priority, where, &stream->native, err);
    if (status)
        tni_release(stream);
    else
        *out = stream;
    return status;
}

/* If `raw` is NULL, it means the vendor's default stream. */
tn_status tn_stream_wrap(tn_device *device, void *raw, tn_stream **out, tn_error *err)
{
    static const char where[] = "tn_stream_wrap";
    tni_call call;
    if (!out)
        return fail_null("out", where, err);
    tn_status status = tni_device_or_default(device, &device, err);
    if (!status)
        status = tni_device_open(device, where, &call, err);
    if (!status && !tni_row_has_streams(call.row))
        status = tn_fail(err, TN_UNSUPPORTED, 0, where,
                         "platform %s has no streams of its own to wrap; use tn_stream_create",
                         device->platform->name);
    if (status)
        return status;
    tn_stream *stream = tni_stream_allocate(device, TNI_STREAM_WRAPPED, TN_PRIORITY_DEFAULT);
    if (!stream)
        return tni_no_memory(err, where, "a stream");
    stream->native = raw;
    tni_capture_show(stream);
    *out = stream;
    return TN_OK;
}

/* A lost device is not called: the module's part of the stream was lost with it. */
void tn_stream_release(tn_stream *stream)
{
    tni_call call;
    if (!stream || stream->kind == TNI_STREAM_STANDARD || !tni_references_drop(&stream->references))
        return;
    tni_graph_cancel(stream);
    tni_trail_end(stream);
    tni_scratch_end(stream);
    if (stream->kind == TNI_STREAM_OWN && stream->native &&
        tni_device_open_to_return(stream->device, &call) && tni_stream_epoch(stream) == call.epoch)
        call.row->stream_destroy(call.self, call.device, stream->native);
    tni_release(stream);
}

tn_device *tn_stream_device(const tn_stream *stream)
{
    return stream ? stream->device : NULL;
}

int32_t tn_stream_priority(const tn_stream *stream)
{
    return stream ? stream->priority : TN_PRIORITY_DEFAULT;
}

uintptr_t tn_stream_raw(const tn_stream *stream)
{
    if (!stream)
        return 0;
    if (stream->native)
        tni_capture_show((tn_stream *)(uintptr_t)stream);
    return (uintptr_t)stream->native;
}

uintptr_t tn_stream_raw_current(const tn_device *device)
{
    return tn_stream_raw(tn_stream_current(device));
}

tn_status tn_stream_query(tn_stream *stream, int32_t *out_done, tn_error *err)
{
    static const char where[] = "tn_stream_query";
    tni_call call;
    int32_t done = 1;
    if (!out_done)
        return fail_null("out_done", where, err);
    tn_status status = open_for_query(stream, where, &call, err);
    if (!status && tni_row_has_streams(call.row)) {
        tn_error said = {0};
        done = 0;
        status = tni_device_result_check(
            &call, where,
            call.row->stream_query(call.self, call.device, stream->native, &done, &said), &said,
            err);
        (void)tni_trail_report(stream, status, err);
    }
    if (!status)
        *out_done = done != 0;
    return status;
}

tn_status tn_stream_synchronize(tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_stream_synchronize";
    tni_call call;
    tn_status status = open_for_query(stream, where, &call, err);
    if (status || !tni_row_has_streams(call.row))
        return status;
    tn_error said = {0};
    status = call.row->stream_synchronize(call.self, call.device, stream->native, &said);
    return tni_trail_report(stream, tni_device_result_check(&call, where, status, &said, err), err);
}

/* The event is released as soon as the wait is queued: platforms keep what their streams still need
 * of it. */
tn_status tn_stream_wait_stream(tn_stream *stream, tn_stream *other, tn_error *err)
{
    static const char where[] = "tn_stream_wait_stream";
    tni_call call;
    tn_event *event = NULL;
    tn_status status = tni_stream_open(stream, where, &call, err);
    if (!status)
        status = tni_stream_open(other, where, &call, err);
    if (status || stream == other || !tni_row_has_streams(call.row))
        return status;
    status = tn_event_create(other->device, NULL, &event, err);
    if (!status)
        status = tn_event_record(event, other, err);
    if (!status)
        status = tn_stream_wait_event(stream, event, err);
    tn_event_release(event);
    return status;
}
