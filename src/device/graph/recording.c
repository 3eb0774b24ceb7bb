/* Whether a graph is being recorded on a stream, and by which thread. */
#include "device/stream/current.h"
#include "graph.h"

_Atomic int32_t tni_graph_recordings;

tn_status tni_graph_own(tn_stream *stream, const char *where, tn_error *err)
{
    if (atomic_load_explicit(&stream->recorder, memory_order_acquire) == tni_current_thread())
        return TN_OK;
    return tn_fail(err, TN_BUSY, 0, where,
                   "another thread records a graph on this stream of %s; queue on another one",
                   stream->device->id);
}

tn_status tni_graph_reject(tn_stream *stream, const char *where, const char *why, tn_error *err)
{
    tn_status status = tni_graph_own(stream, where, err);
    if (status)
        return status;
    return tn_fail(err, TN_UNSUPPORTED, 0, where,
                   "a graph is being recorded on this stream of %s, and %s; call tn_graph_end "
                   "first",
                   stream->device->id, why);
}

int32_t tn_graph_is_recording(const tn_stream *stream)
{
    return stream && atomic_load_explicit(&stream->recording, memory_order_acquire) != NULL;
}
