/* Internals of a graph, and of the recording that it starts as: a stream that is being recorded
 * points to it.
 *
 * A recording belongs to the thread that began it, so it needs no lock. */
#ifndef TNI_DEVICE_GRAPH_H
#define TNI_DEVICE_GRAPH_H

#include "base/buffer.h"
#include "base/references.h"
#include "device/stream/scratch.h"
#include "tenon/graph.h"

/* One recorded call. `object` is opaque here; the functions know its type. */
typedef struct tni_graph_step {
    void *object;
    /* Repeats the call, possibly on another stream. */
    tn_status (*run)(void *object, tn_stream *stream, tn_error *err);
    void (*write)(const void *object, tni_buffer *out); /* for messages: one line */
    void (*release)(void *object);
} tni_graph_step;

/* The part of a graph that a trail keeps: its text only, so that the graph can be released before
 * its trace. */
typedef struct tni_graph_words {
    tni_references references;
    char text[];
} tni_graph_words;

struct tn_graph {
    tn_device *device;
    int32_t epoch;
    bool native; /* recorded by the platform; `platforms` is its graph, once it has ended */
    void *platforms;
    tni_graph_step *steps;
    size_t count;
    size_t capacity;
    tni_scratch *arenas; /* scratch memory; the largest was added last and is first in the list */
    tni_graph_words *words;
    tni_mutex lock; /* held while a run is queued; guards the fields below */
    tn_event *last; /* recorded after the last run; NULL before the first, or without events */
    _Atomic int64_t runs;
};

/* Number of streams of the process that are being recorded. */
extern _Atomic int32_t tni_graph_recordings;

/* The recording of a stream, of whichever thread; NULL for none. */
static inline tn_graph *tni_graph_of(tn_stream *stream)
{
    return atomic_load_explicit(&stream->recording, memory_order_acquire);
}

static inline bool tni_graph_any(void)
{
    return atomic_load_explicit(&tni_graph_recordings, memory_order_relaxed) > 0;
}

/* Fails with TN_BUSY if another thread made the recording. */
tn_status tni_graph_own(tn_stream *stream, const char *where, tn_error *err);

/* Fails, for a stream that is being recorded: TN_UNSUPPORTED with the reason `why`, or TN_BUSY if
 * another thread records. */
tn_status tni_graph_reject(tn_stream *stream, const char *where, const char *why, tn_error *err);

/* Whether the program itself makes the platform record the stream now. Queued work is captured; a
 * wait, a query or work that must run now would invalidate the capture. Only a stream whose handle
 * the program knows can be captured. */
bool tni_capture_is_on(tn_stream *stream);

/* Marks a stream that may be captured: the program has its handle, or it waits for such a
 * stream. */
void tni_capture_show(tn_stream *stream);

/* False as long as no stream can be captured. */
extern _Atomic bool tni_capture_shown;
static inline bool tni_capture_any(void)
{
    return atomic_load_explicit(&tni_capture_shown, memory_order_relaxed);
}

/* Fails with TN_UNSUPPORTED and the reason `why` if the stream is being captured, else TN_OK. */
tn_status tni_capture_reject(tn_stream *stream, const char *where, const char *why, tn_error *err);

/* Takes ownership of the step, even if it fails for lack of memory. */
tn_status tni_graph_add(tn_graph *graph, const tni_graph_step *step, const char *where,
                        tn_error *err);

/* Scratch memory for a recorded call, kept by the graph. Calls run one after another, so they share
 * it. */
tn_status tni_graph_scratch(tn_graph *graph, uint64_t bytes, const char *where, void **out,
                            tn_error *err);

/* Cancels a recording of any thread, because its stream ends. */
void tni_graph_cancel(tn_stream *stream);

/* Destroys a graph, or a recording that was taken off its stream. */
void tni_graph_destroy(tn_graph *graph);

#endif
