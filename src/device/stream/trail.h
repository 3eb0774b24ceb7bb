/* What ran last on a stream, for the message of a fault that shows only later. Kept where work is queued;
 * elsewhere a fault is told by the call that made it.
 * Thread-safety: Safe. */
#ifndef TNI_DEVICE_STREAM_TRAIL_H
#define TNI_DEVICE_STREAM_TRAIL_H

#include "base/buffer.h"
#include "stream.h"

/* Something that ran, held by whoever knows what it is. */
typedef struct tni_trace {
    void *object;
    void (*write)(const void *object, tni_buffer *out);
    void (*release)(void *object);
} tni_trace;

/* Takes the trace over, also when there is no memory to keep it. */
void tni_trail_add(tn_stream *stream, const tni_trace *trace);

/* Adds to a message what ran last, the newest first, as far as it fits, and tells the log all of it. Only
 * for TN_DEVICE_LOST. Returns `status`. */
tn_status tni_trail_tell(tn_stream *stream, tn_status status, tn_error *err);

void tni_trail_end(tn_stream *stream);

#endif
