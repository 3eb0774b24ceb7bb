/* Checks a stream before work is queued on it. */
#include "device/graph/graph.h"
#include "epoch.h"

static tn_status reject_recording(tn_stream *stream, const char *where, tn_error *err)
{
    return tni_graph_reject(stream, where, "this would not be recorded", err);
}

tn_status tni_stream_open_any(const tn_stream *stream, const char *where, tni_call *out,
                              tn_error *err)
{
    if (!stream)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the stream is NULL");
    tn_status status = tni_device_open(stream->device, where, out, err);
    return status ? status
                  : tni_device_epoch_check(stream->device, tni_stream_epoch(stream), "stream",
                                           where, err);
}

tn_status tni_stream_open(const tn_stream *stream, const char *where, tni_call *out, tn_error *err)
{
    tn_status status = tni_stream_open_any(stream, where, out, err);
    if (!status && tn_graph_is_recording(stream))
        status = reject_recording((tn_stream *)(uintptr_t)stream, where, err);
    return status;
}

tn_status tni_stream_for_step(tn_stream *stream, tn_device *device, const char *where,
                              tn_stream **out, tn_error *err)
{
    if (!device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the device is NULL");
    if (!stream)
        stream = tn_stream_current(device);
    if (stream->device != device)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the stream belongs to %s, not to %s",
                       stream->device->id, device->id);
    tn_status status =
        tni_device_epoch_check(device, tni_stream_epoch(stream), "stream", where, err);
    if (!status && tni_graph_of(stream))
        status = tni_graph_own(stream, where, err);
    if (!status)
        *out = stream;
    return status;
}

tn_status tni_stream_for(tn_stream *stream, tn_device *device, const char *where, tn_stream **out,
                         tn_error *err)
{
    tn_status status = tni_stream_for_step(stream, device, where, &stream, err);
    if (!status && tni_graph_of(stream))
        status = reject_recording(stream, where, err);
    if (!status)
        *out = stream;
    return status;
}
