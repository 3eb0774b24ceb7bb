/* The last operations on a stream, for the message of a fault that shows only later. Kept where
 * work is queued; elsewhere the failing call reports the fault itself.
 * Thread-safety: Safe. */
#ifndef TNI_DEVICE_STREAM_TRAIL_H
#define TNI_DEVICE_STREAM_TRAIL_H

#include "base/buffer.h"
#include "stream.h"

/* One operation. `object` is opaque here; the functions know its type. */
typedef struct tni_trace {
    void *object;
    void (*write)(const void *object, tni_buffer *out);
    void (*release)(void *object);
} tni_trace;

/* Takes ownership of the trace, even if there is no memory to keep it. */
void tni_trail_add(tn_stream *stream, const tni_trace *trace);

/* For TN_DEVICE_LOST, appends the last operations to the message, newest first, as far as they fit,
 * and logs all of them. Returns `status`. */
tn_status tni_trail_report(tn_stream *stream, tn_status status, tn_error *err);

void tni_trail_end(tn_stream *stream);

#endif
