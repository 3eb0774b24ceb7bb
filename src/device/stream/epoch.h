/* The epoch of its device that a stream or an event belongs to. A reset starts the next
 * epoch; of objects of an earlier one only the handle is left, and the module is not called for
 * them. */
#ifndef TNI_DEVICE_STREAM_EPOCH_H
#define TNI_DEVICE_STREAM_EPOCH_H

#include "base/epoch.h"
#include "stream.h"

static inline int32_t tni_stream_epoch(const tn_stream *stream)
{
    return atomic_load_explicit(&stream->epoch, memory_order_acquire);
}

static inline int32_t tni_device_epoch(const tn_device *device)
{
    return tni_stream_epoch(device->standard);
}

/* The device was reset. */
static inline void tni_device_epoch_next(tn_device *device)
{
    atomic_fetch_add(&device->standard->epoch, 1);
    tni_epoch_next();
}

/* Fails with TN_DEVICE_LOST for a stream or an event (`what`) of an earlier epoch. */
tn_status tni_device_epoch_check(const tn_device *device, int32_t epoch, const char *what,
                                 const char *where, tn_error *err);

/* As tni_device_open, for a call on the stream. NULL is TN_INVALID_ARGUMENT. tni_stream_open fails if
 * a graph is being recorded on the stream. */
tn_status tni_stream_open_any(const tn_stream *stream, const char *where, tni_call *out,
                              tn_error *err);
tn_status tni_stream_open(const tn_stream *stream, const char *where, tni_call *out, tn_error *err);

#endif
