/* Allocation of streams, and the default stream of a device, which is created and destroyed with it. */
#include "base/alloc.h"
#include "current.h"
#include "epoch.h"
#include "scratch.h"
#include "trail.h"

tn_stream *tni_stream_allocate(tn_device *device, int32_t kind, int32_t priority)
{
    tn_stream *stream = tni_alloc_zeroed(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->kind = kind;
    stream->priority = priority;
    stream->device = device;
    tni_references_init(&stream->references);
    atomic_init(&stream->epoch, kind == TNI_STREAM_STANDARD ? 0 : tni_device_epoch(device));
    return stream;
}

tn_status tni_stream_standard_create(tn_device *device, tn_stream **out, tn_error *err)
{
    tn_stream *stream = tni_stream_allocate(device, TNI_STREAM_STANDARD, TN_PRIORITY_DEFAULT);
    if (!stream)
        return tni_no_memory(err, "devices", "a default stream");
    *out = stream;
    return TN_OK;
}

void tni_stream_standard_destroy(tn_stream *stream)
{
    if (!stream)
        return;
    tni_current_drop(stream->device);
    if (stream->device->ordinal >= 0) /* the device was in use, so its platform ends too */
        tni_current_drop(stream->device->platform);
    tni_trail_end(stream);
    tni_scratch_end(stream);
    tni_release(stream);
}
