/* Streams: work that runs in order, on one device.
 *
 * On the cpu, and on any platform without streams of its own, a stream is the calling thread: a call
 * has done its work when it returns, and waiting for another platform's event waits on the host.
 *
 * Thread-safety: Safe. Work that two threads queue on one stream runs in the order they came. */
#ifndef TENON_STREAM_H
#define TENON_STREAM_H

#include "device.h"

TN_BEGIN_DECLS

typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

typedef struct tn_stream_args {
    size_t struct_size;
    int32_t priority; /* TN_PRIORITY_...; what is beyond the platform's range counts as its end */
    int32_t reserved;
} tn_stream_args;
TN_ENDS_WITH(tn_stream_args, reserved);

/* NULL device: the current one; NULL args: a stream of default priority. Released when the last one
 * who holds it lets go: the creator, once (twice is a use after free), and every thread on which it is
 * current. NULL, and a device's default stream, are accepted. */
TN_API tn_status tn_stream_create(tn_device *device, const tn_stream_args *args, tn_stream **out,
                                  tn_error *err);
TN_API void tn_stream_release(tn_stream *stream);

/* Wraps a stream that the program has from the vendor (a cudaStream_t); it stays the program's, and
 * must live longer than this. TN_UNSUPPORTED where the platform has no streams of its own. It may be one
 * that the program has the vendor record for a graph of its own: tenon/graph.h says what becomes of calls then. */
TN_API tn_status tn_stream_wrap(tn_device *device, void *raw, tn_stream **out, tn_error *err);

/* The device's own, always there. Lent. NULL for a NULL device. */
TN_API tn_stream *tn_stream_default(const tn_device *device);

/* The calling thread's current stream of a device: its default one until set. Lent for as long as it
 * is current. `set` makes it current on its own device and changes no current device; NULL is
 * refused. */
TN_API tn_stream *tn_stream_current(const tn_device *device);
TN_API tn_status tn_stream_set(tn_stream *stream, tn_error *err);

/* A scope in which a stream is current, and its device too. As tn_device_guard. Frozen. */
typedef struct tn_stream_guard {
    tn_stream *previous; /* held */
    tn_device_guard device;
} tn_stream_guard;

TN_API tn_status tn_stream_guard_enter(tn_stream_guard *guard, tn_stream *stream, tn_error *err);
TN_API void tn_stream_guard_leave(tn_stream_guard *guard);

TN_API tn_device *tn_stream_device(const tn_stream *stream);
TN_API int32_t tn_stream_priority(const tn_stream *stream);

/* The vendor's handle (a cudaStream_t as an integer); 0 for a default stream, and where the platform
 * has none. By device, of its current stream on this thread: what generated code launches on. */
TN_API uintptr_t tn_stream_raw(const tn_stream *stream);
TN_API uintptr_t tn_stream_raw_current(const tn_device *device);

/* 1 when everything queued has run. A fault of that work is returned here. */
TN_API tn_status tn_stream_query(tn_stream *stream, int32_t *out_done, tn_error *err);
TN_API tn_status tn_stream_synchronize(tn_stream *stream, tn_error *err);

/* What is queued on `stream` from now on runs after the event's latest record; an event that was
 * never recorded holds nothing up. Across platforms the host waits. */
TN_API tn_status tn_stream_wait_event(tn_stream *stream, tn_event *event, tn_error *err);

/* The same for all that is queued on `other` now. */
TN_API tn_status tn_stream_wait_stream(tn_stream *stream, tn_stream *other, tn_error *err);

TN_END_DECLS

#endif
