/* The calls that allocate and free device memory: they resolve the device or the stream. */
#include "base/log.h"
#include "device/graph/graph.h"
#include "device/stream/trail.h"
#include "memory.h"

tn_status tn_memory_alloc(tn_device *device, uint64_t bytes, const char *label, void **out,
                          tn_error *err)
{
    uint32_t epoch;
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, "tn_memory_alloc", "out is NULL");
    tn_status status = tni_device_or_default(device, &device, err);
    return status ? status : tni_memory_acquire(device, bytes, label, out, &epoch, err);
}

void tn_memory_free(tn_device *device, void *memory)
{
    if (!memory)
        return;
    if (tni_device_or_default(device, &device, NULL))
        tni_log(TN_LOG_ERROR, "%p is not freed: no device was given, and none is current", memory);
    else
        tni_memory_free(device, memory);
}

/* Returns the stream to order on: `stream`, or for NULL the current stream of the current
 * device. */
static tn_status open_order(tn_stream *stream, const char *where, tn_stream **out, tn_error *err)
{
    static const char why[] =
        "memory of a graph must be allocated before the recording and freed after it";
    tn_device *device = stream ? stream->device : NULL;
    tn_status status = tni_device_or_default(device, &device, err);
    if (!status)
        status = tni_stream_for_step(stream, device, where, &stream, err);
    if (!status && tni_graph_of(stream))
        status = tni_graph_reject(stream, where, why, err);
    if (!status)
        status = tni_capture_reject(stream, where, why, err);
    if (!status)
        *out = stream;
    return status;
}

tn_status tn_memory_alloc_on(tn_stream *stream, uint64_t bytes, const char *label, void **out,
                             tn_error *err)
{
    static const char where[] = "tn_memory_alloc_on";
    if (!out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "out is NULL");
    tn_status status = open_order(stream, where, &stream, err);
    if (status)
        return status;
    status = tni_memory_alloc_on(stream, where, bytes, label, out, err);
    return tni_trail_report(stream, status, err);
}

tn_status tn_memory_free_on(tn_stream *stream, void *memory, tn_error *err)
{
    static const char where[] = "tn_memory_free_on";
    if (!memory)
        return TN_OK;
    tn_status status = open_order(stream, where, &stream, err);
    if (status)
        return status;
    return tni_trail_report(stream, tni_memory_free_on(stream, memory, where, err), err);
}
