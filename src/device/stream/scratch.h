/* Scratch memory of a stream, reused by one call after another, so that calls need not allocate.
 * Thread-safety: Safe; a second thread on the same stream gets separate memory meanwhile. */
#ifndef TNI_DEVICE_STREAM_SCRATCH_H
#define TNI_DEVICE_STREAM_SCRATCH_H

#include "stream.h"

typedef struct tni_scratch {
    struct tni_scratch *next;
    void *memory; /* on the stream's device, aligned to 64 bytes */
    uint64_t bytes;
    uint32_t epoch; /* epoch of the memory */
    bool captured;  /* it belongs to a graph of the program, and to nothing else */
} tni_scratch;

/* tni_scratch_acquire returns at least `bytes` bytes, valid until tni_scratch_release. On a platform
 * with streams they may be released as soon as the work is queued, as the stream preserves the
 * order. On failure *out is unchanged. */
tn_status tni_scratch_acquire(tn_stream *stream, uint64_t bytes, const char *where,
                              tni_scratch **out, tn_error *err);
void tni_scratch_release(tn_stream *stream, tni_scratch *scratch);

/* Returns all scratch memory to the device, after the work that may use it. */
void tni_scratch_end(tn_stream *stream);

#endif
