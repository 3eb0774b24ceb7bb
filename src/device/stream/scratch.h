/* Scratch memory of a stream: what one call after the other uses, so that none has to ask the device.
 * Thread-safety: Safe; a second thread on the same stream gets memory of its own meanwhile. */
#ifndef TNI_DEVICE_STREAM_SCRATCH_H
#define TNI_DEVICE_STREAM_SCRATCH_H

#include "stream.h"

typedef struct tni_scratch {
    struct tni_scratch *next;
    void *memory; /* of the stream's device, aligned to 64 */
    uint64_t bytes;
    uint32_t life; /* the memory's */
    bool captured; /* the memory is that of a graph of the program's, and no one else's */
} tni_scratch;

/* At least so many bytes, until they are given back: on a platform with streams that may be as soon as
 * the work is queued, as the stream keeps the order. On failure *out is untouched. */
tn_status tni_scratch_take(tn_stream *stream, uint64_t bytes, const char *where, tni_scratch **out,
                           tn_error *err);
void tni_scratch_give(tn_stream *stream, tni_scratch *scratch);

/* Gives all of it back to the device, after the work that may use it. */
void tni_scratch_end(tn_stream *stream);

#endif
