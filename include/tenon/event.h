/* Events: markers in the work of a stream.
 *
 * Thread-safety: Safe; if two threads record one event at once, either record may be the latest. */
#ifndef TENON_EVENT_H
#define TENON_EVENT_H

#include "stream.h"

TN_BEGIN_DECLS

typedef struct tn_event_args {
    size_t struct_size;
    int32_t enable_timing; /* 1: can measure time                          */
    int32_t blocking;      /* 1: waiting threads sleep instead of spinning */
    int32_t interprocess;  /* 1: another process can open it; some platforms refuse this together
                              with timing */
    int32_t reserved;
} tn_event_args;
TN_ENDS_WITH(tn_event_args, reserved);

/* NULL device: the current one; NULL args: no options. Must be released exactly once; a second
 * release is a use after free. NULL is accepted. */
TN_API tn_status tn_event_create(tn_device *device, const tn_event_args *args, tn_event **out,
                                 tn_error *err);
TN_API void tn_event_release(tn_event *event);

TN_API tn_device *tn_event_device(const tn_event *event);

/* May be recorded repeatedly; the latest record counts. NULL stream: the current stream of the
 * event's device. Fails with TN_INVALID_ARGUMENT for a stream of another device. */
TN_API tn_status tn_event_record(tn_event *event, tn_stream *stream, tn_error *err);

/* As tn_stream_wait_event; NULL stream: the current stream of the event's device. */
TN_API tn_status tn_event_wait(tn_event *event, tn_stream *stream, tn_error *err);

/* *out_done is 1 if the work before its latest record has completed, or if it was never
 * recorded. */
TN_API tn_status tn_event_query(tn_event *event, int32_t *out_done, tn_error *err);
TN_API tn_status tn_event_synchronize(tn_event *event, tn_error *err);

/* Milliseconds from `start` to `stop`; negative if `stop` was recorded before `start`. Checked in
 * this order, each with its own status:
 *     NULL                                TN_INVALID_ARGUMENT
 *     different platforms or devices      TN_INCOMPATIBLE
 *     created without timing              TN_UNSUPPORTED
 *     not recorded                        TN_NOT_FOUND
 *     recorded, but not complete          TN_NOT_READY */
TN_API tn_status tn_event_elapsed_time(tn_event *start, tn_event *stop, double *out_ms,
                                       tn_error *err);

/* Shares an event with another process on this machine: export an event created with
 * `interprocess`, send the bytes, and import them there on the same device. Both processes see each
 * other's records. On platforms without events of their own, such an event has a file, on Linux
 * /dev/shm/tenon-*, which is deleted when its creator releases it. Files left by a killed process
 * are deleted when the next process creates such an event. */
TN_API tn_status tn_event_export(tn_event *event, tn_event_handle *out, tn_error *err);
TN_API tn_status tn_event_import(tn_device *device, const tn_event_handle *handle, tn_event **out,
                                 tn_error *err);

TN_END_DECLS

#endif
