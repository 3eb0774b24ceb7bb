/* Captures: streams that the program itself makes the platform record, for a graph of the
 * program. */
#include "device/stream/epoch.h"
#include "graph.h"

_Atomic bool tni_capture_shown;

void tni_capture_show(tn_stream *stream)
{
    atomic_store_explicit(&stream->is_shown, true, memory_order_relaxed);
    atomic_store_explicit(&tni_capture_shown, true, memory_order_relaxed);
}

bool tni_capture_is_on(tn_stream *stream)
{
    tni_call call;
    return atomic_load_explicit(&stream->is_shown, memory_order_relaxed) &&
           !atomic_load_explicit(&stream->recording,
                                 memory_order_relaxed) && /* a recording of Tenon */
           tni_device_open(stream->device, "", &call, NULL) == TN_OK &&
           call.row->stream_is_captured && tni_stream_epoch(stream) == call.epoch &&
           call.row->stream_is_captured(call.self, call.device, stream->native);
}

tn_status tni_capture_reject(tn_stream *stream, const char *where, const char *why, tn_error *err)
{
    if (!tni_capture_is_on(stream))
        return TN_OK;
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "the program captures this stream of %s, and %s; end the capture first",
                   stream->device->id, why);
}
