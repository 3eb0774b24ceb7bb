/* The current streams of each thread, and the guards that restore them. */
#include "base/alloc.h"
#include "current.h"
#include "epoch.h"

static void retain_stream(tn_stream *stream)
{
    if (stream->kind != TNI_STREAM_STANDARD)
        tni_references_add(&stream->references);
}

/* Returns false if out of memory; never if the device had an entry before. */
static bool make_current(tn_stream *stream)
{
    tni_current *entry = stream->kind == TNI_STREAM_STANDARD ? tni_current_find(stream->device)
                                                             : tni_current_add(stream->device);
    if (!entry)
        return stream->kind == TNI_STREAM_STANDARD;
    tn_stream *before = entry->stream;
    retain_stream(stream);
    entry->stream = stream;
    entry->release = tn_stream_release;
    tn_stream_release(before);
    return true;
}

static tn_status set_stream(tn_stream *stream, const char *where, tn_error *err)
{
    if (!stream)
        return tn_fail(
            err, TN_INVALID_ARGUMENT, 0, where,
            "the stream is NULL; tn_stream_default returns the default stream of a device");
    tn_status status =
        tni_device_epoch_check(stream->device, tni_stream_epoch(stream), "stream", where, err);
    if (!status && !make_current(stream))
        status = tni_no_memory(err, where, "a thread's current streams");
    return status;
}

tn_status tn_stream_set(tn_stream *stream, tn_error *err)
{
    return set_stream(stream, "tn_stream_set", err);
}

tn_status tn_stream_guard_enter(tn_stream_guard *guard, tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_stream_guard_enter";
    if (!guard)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the guard is NULL");
    tn_status status = tn_device_guard_enter(&guard->device, stream ? stream->device : NULL, err);
    if (status || !stream)
        return status;
    tn_stream *previous = tn_stream_current(stream->device);
    retain_stream(previous);
    status = set_stream(stream, where, err);
    if (status) {
        tn_stream_release(previous);
        tn_device_guard_leave(&guard->device);
    } else {
        guard->previous = previous;
    }
    return status;
}

void tn_stream_guard_leave(tn_stream_guard *guard)
{
    if (!guard || !tni_guard_is_of_this_thread(&guard->device))
        return;
    if (guard->previous) {
        (void)make_current(guard->previous);
        tn_stream_release(guard->previous);
        guard->previous = NULL;
    }
    tn_device_guard_leave(&guard->device);
}
