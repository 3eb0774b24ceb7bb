/* Events: points in a stream's work.
 *
 * Thread-safety: Safe; of two threads that record one event at once, either may come last. */
#ifndef TENON_EVENT_H
#define TENON_EVENT_H

#include "stream.h"

TN_BEGIN_DECLS

typedef struct tn_event_args {
    size_t struct_size;
    int32_t enable_timing; /* 1: it can be a point in time                                  */
    int32_t blocking;      /* 1: who waits for it sleeps instead of spinning                */
    int32_t interprocess;  /* 1: another process can open it; not together with timing on
                              platforms that refuse that                                    */
    int32_t reserved;
} tn_event_args;
TN_ENDS_WITH(tn_event_args, reserved);

/* NULL device: the current one; NULL args: none of these. Release it once: twice is a use after free.
 * NULL is accepted. */
TN_API tn_status tn_event_create(tn_device *device, const tn_event_args *args, tn_event **out,
                                 tn_error *err);
TN_API void tn_event_release(tn_event *event);

TN_API tn_device *tn_event_device(const tn_event *event);

/* May be recorded again and again: the latest counts. NULL stream: the current one of the event's
 * device. TN_INVALID_ARGUMENT for a stream of another device. */
TN_API tn_status tn_event_record(tn_event *event, tn_stream *stream, tn_error *err);

/* As tn_stream_wait_event; NULL stream: the current one of the event's device. */
TN_API tn_status tn_event_wait(tn_event *event, tn_stream *stream, tn_error *err);

/* 1 when the work up to its latest record has run, and when it was never recorded. */
TN_API tn_status tn_event_query(tn_event *event, int32_t *out_done, tn_error *err);
TN_API tn_status tn_event_synchronize(tn_event *event, tn_error *err);

/* Milliseconds from `start` to `stop`; negative when they are the other way round. Checked in this
 * order, each with a status of its own:
 *     NULL                                TN_INVALID_ARGUMENT
 *     two platforms, or two devices       TN_INCOMPATIBLE
 *     created without timing              TN_UNSUPPORTED
 *     not recorded                        TN_NOT_FOUND
 *     recorded, but not complete          TN_NOT_READY */
TN_API tn_status tn_event_elapsed_time(tn_event *start, tn_event *stop, double *out_ms,
                                       tn_error *err);

/* For another process on this machine: export from an event created with `interprocess`, send the
 * bytes, and open them there on the same device. Both see each other's records. On platforms without
 * events of their own such an event has a file, on Linux /dev/shm/tenon-*, which goes when its creator
 * releases it; what a process leaves that is killed goes when the next one creates some. */
TN_API tn_status tn_event_export(tn_event *event, tn_event_handle *out, tn_error *err);
TN_API tn_status tn_event_import(tn_device *device, const tn_event_handle *handle, tn_event **out,
                                 tn_error *err);

TN_END_DECLS

#endif
