/* The epoch of its device that a stream or an event belongs to. A reset starts the next
 * epoch; of objects of an earlier one only the handle is left, and the module is not called for
 * them. */
#ifndef TNI_DEVICE_STREAM_EPOCH_H
#define TNI_DEVICE_STREAM_EPOCH_H

#include "stream.h"

int32_t tni_device_epoch(const tn_device *device);
int32_t tni_stream_epoch(const tn_stream *stream);
void tni_device_epoch_next(tn_device *device); /* the device was reset */

/* Fails with TN_DEVICE_LOST for a stream or an event (`what`) of an earlier epoch. */
tn_status tni_device_epoch_check(const tn_device *device, int32_t epoch, const char *what,
                                 const char *where, tn_error *err);

/* As tni_device_open, for a call on the stream. NULL is TN_INVALID_ARGUMENT. */
tn_status tni_stream_open(const tn_stream *stream, const char *where, tni_call *out, tn_error *err);

#endif
