/* Which life of its device a stream or an event is from. A reset ends one life and begins the next;
 * of what was made in an earlier one only the handle is left, and the module hears of it no more. */
#ifndef TNI_DEVICE_STREAM_LIFE_H
#define TNI_DEVICE_STREAM_LIFE_H

#include "stream.h"

int32_t tni_life_of(const tn_device *device);
int32_t tni_life_of_stream(const tn_stream *stream);
void tni_life_next(tn_device *device); /* the device was reset */

/* TN_DEVICE_LOST for a stream or an event (`what`) of an earlier life. */
tn_status tni_life_check(const tn_device *device, int32_t life, const char *what, const char *where,
                         tn_error *err);

/* As tni_device_open, for a call on the stream. NULL is TN_INVALID_ARGUMENT. */
tn_status tni_stream_open(const tn_stream *stream, const char *where, tni_call *out, tn_error *err);

#endif
