/* Streams: queues of work that runs in order on one device.
 *
 * On the cpu, and on any platform without its own streams, a stream is the calling thread: work is
 * complete when the call returns, and waiting for an event of another platform blocks the host.
 *
 * Thread-safety: Safe. Work that two threads queue on one stream runs in the order in which it was
 * queued. */
#ifndef TENON_STREAM_H
#define TENON_STREAM_H

#include "device.h"

TN_BEGIN_DECLS

typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

typedef struct tn_stream_args {
    size_t struct_size;
    int32_t priority; /* TN_PRIORITY_...; clamped to the platform's range */
    int32_t reserved;
} tn_stream_args;
TN_ENDS_WITH(tn_stream_args, reserved);

/* NULL device: the current one; NULL args: a stream of default priority. A stream is reference
 * counted: the creator holds one reference, which it must release exactly once (a second release is
 * a use after free), and every thread on which it is current holds one. Release accepts NULL and a
 * device's default stream. */
TN_API tn_status tn_stream_create(tn_device *device, const tn_stream_args *args, tn_stream **out,
                                  tn_error *err);
TN_API void tn_stream_release(tn_stream *stream);

/* Wraps a vendor stream of the program (a cudaStream_t). The program still owns it, and it must
 * outlive this object. Fails with TN_UNSUPPORTED if the platform has no streams of its own. The
 * stream may be one that the program captures for its own graph with the vendor's API: see
 * tenon/graph.h. */
TN_API tn_status tn_stream_wrap(tn_device *device, void *raw, tn_stream **out, tn_error *err);

/* The default stream of the device, which always exists. Borrowed. NULL for a NULL device. */
TN_API tn_stream *tn_stream_default(const tn_device *device);

/* The calling thread's current stream of a device: the default stream until set. Borrowed while it
 * is current. `set` makes the stream current on its own device and does not change the current
 * device; NULL is refused. */
TN_API tn_stream *tn_stream_current(const tn_device *device);
TN_API tn_status tn_stream_set(tn_stream *stream, tn_error *err);

/* A scope in which a stream and its device are current. Works as tn_device_guard. Frozen. */
typedef struct tn_stream_guard {
    tn_stream *previous; /* holds a reference */
    tn_device_guard device;
} tn_stream_guard;

TN_API tn_status tn_stream_guard_enter(tn_stream_guard *guard, tn_stream *stream, tn_error *err);
TN_API void tn_stream_guard_leave(tn_stream_guard *guard);

TN_API tn_device *tn_stream_device(const tn_stream *stream);
TN_API int32_t tn_stream_priority(const tn_stream *stream);

/* The vendor's handle (a cudaStream_t as an integer); 0 for a default stream and if the platform
 * has no streams. _current returns that of the device's current stream on this thread, on which
 * generated code launches. */
TN_API uintptr_t tn_stream_raw(const tn_stream *stream);
TN_API uintptr_t tn_stream_raw_current(const tn_device *device);

/* *out_done is 1 if all queued work has completed. An error of that work is returned here. */
TN_API tn_status tn_stream_query(tn_stream *stream, int32_t *out_done, tn_error *err);
TN_API tn_status tn_stream_synchronize(tn_stream *stream, tn_error *err);

/* Work queued on `stream` from now on runs after the event's latest record. An event that was never
 * recorded delays nothing. Across platforms the host waits. */
TN_API tn_status tn_stream_wait_event(tn_stream *stream, tn_event *event, tn_error *err);

/* The same for all work queued on `other` so far. */
TN_API tn_status tn_stream_wait_stream(tn_stream *stream, tn_stream *other, tn_error *err);

TN_END_DECLS

#endif
