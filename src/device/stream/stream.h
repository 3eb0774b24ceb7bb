/* A stream from inside. */
#ifndef TNI_DEVICE_STREAM_H
#define TNI_DEVICE_STREAM_H

#include "device/device.h"
#include "tenon/event.h"

enum { TNI_STREAM_STANDARD, TNI_STREAM_OWN, TNI_STREAM_WRAPPED };

struct tni_scratch;
struct tni_trail;
struct tn_graph;

struct tn_stream {
    _Atomic int32_t holders; /* of the standard one: not counted, it lives with its device */
    int32_t kind;
    int32_t priority;
    _Atomic int32_t life; /* the one it was made in; of the standard one its device's now */
    tn_device *device;
    struct tni_scratch *_Atomic scratch; /* memory that no call uses now; or NULL */
    struct tni_scratch *_Atomic left;    /* what was outgrown and queued work may still use */
    struct tni_trail *_Atomic trail;     /* what ran last; NULL before the first */
    struct tn_graph *_Atomic recording;  /* the graph that is being recorded; or NULL */
    _Atomic int32_t recorder;            /* the thread that records; 0 for none */
    _Atomic bool is_shown;               /* so that it may be captured: tni_capture_show */
    void *native; /* what the platform's functions take; NULL for the standard one, and where the
                     platform has no streams */
};

/* The stream that work on `device` goes to: `stream`, which must be of it (TN_INVALID_ARGUMENT), or
 * for NULL the calling thread's current one. TN_UNSUPPORTED while a graph is recorded on it. */
tn_status tni_stream_for(tn_stream *stream, tn_device *device, const char *where, tn_stream **out,
                         tn_error *err);

/* The same for what can be recorded: the stream may be one that the calling thread records on. */
tn_status tni_stream_for_step(tn_stream *stream, tn_device *device, const char *where,
                              tn_stream **out, tn_error *err);

#endif
