/* Internals of streams. */
#ifndef TNI_DEVICE_STREAM_H
#define TNI_DEVICE_STREAM_H

#include "base/references.h"
#include "device/device.h"
#include "tenon/event.h"

enum { TNI_STREAM_STANDARD, TNI_STREAM_OWN, TNI_STREAM_WRAPPED };

struct tni_scratch;
struct tni_trail;
struct tn_graph;

struct tn_stream {
    tni_references references; /* unused for the default stream */
    int32_t kind;
    int32_t priority;
    _Atomic int32_t epoch; /* epoch it was made in; default stream: the device's epoch */
    tn_device *device;
    struct tni_scratch *_Atomic scratch; /* memory that no call is using; or NULL */
    struct tni_scratch *_Atomic left;    /* outgrown memory that queued work may still use */
    struct tni_trail *_Atomic trail;     /* what ran last; NULL before the first call */
    struct tn_graph *_Atomic recording;  /* the graph that is being recorded; or NULL */
    _Atomic int32_t recorder;            /* the thread that records; 0 for none */
    _Atomic bool is_shown;               /* it may be captured: see tni_capture_show */
    void *native; /* the platform's handle; NULL for the default stream, and if the platform has no
                   * streams */
};

/* Allocates a stream of that kind, without a handle of the platform. NULL if out of memory. */
tn_stream *tni_stream_allocate(tn_device *device, int32_t kind, int32_t priority);

/* Returns the stream for work on `device`: `stream`, which must belong to it (TN_INVALID_ARGUMENT),
 * or for NULL the calling thread's current one. Fails with TN_UNSUPPORTED while a graph is being
 * recorded on it. */
tn_status tni_stream_for(tn_stream *stream, tn_device *device, const char *where, tn_stream **out,
                         tn_error *err);

/* The same for calls that can be recorded: the calling thread may be recording on the stream. */
tn_status tni_stream_for_step(tn_stream *stream, tn_device *device, const char *where,
                              tn_stream **out, tn_error *err);

#endif
