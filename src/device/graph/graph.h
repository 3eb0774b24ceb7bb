/* A graph from inside, and the recording that it begins as: a stream that is recorded points to it.
 *
 * A recording belongs to the thread that began it, so nothing of it is locked. */
#ifndef TNI_DEVICE_GRAPH_H
#define TNI_DEVICE_GRAPH_H

#include "base/buffer.h"
#include "device/stream/scratch.h"
#include "tenon/graph.h"

/* One call that was recorded, held by whoever knows what it is. */
typedef struct tni_graph_step {
    void *object;
    /* Makes the call once more, on another stream perhaps. */
    tn_status (*run)(void *object, tn_stream *stream, tn_error *err);
    void (*write)(const void *object, tni_buffer *out); /* for messages: one line */
    void (*release)(void *object);
} tni_graph_step;

/* What a trail keeps of a graph: its text alone, so that a graph can end before its trace. */
typedef struct tni_graph_words {
    _Atomic int32_t holders;
    char text[];
} tni_graph_words;

struct tn_graph {
    tn_device *device;
    int32_t life;
    bool native; /* the platform records; `platforms` is what it made of it, once it has ended */
    void *platforms;
    tni_graph_step *steps;
    size_t count;
    size_t capacity;
    tni_scratch *arenas; /* the last is the largest, and the first in the list */
    tni_graph_words *words;
    tni_mutex lock; /* of a run being queued, and of what is below */
    tn_event *last; /* after the last run; NULL before the first, and where there are no events */
    _Atomic int64_t runs;
};

/* How many streams of the process are being recorded. */
extern _Atomic int32_t tni_graph_recordings;

/* The recording of a stream, by whichever thread; NULL for none. */
static inline tn_graph *tni_graph_of(tn_stream *stream)
{
    return atomic_load_explicit(&stream->recording, memory_order_acquire);
}

static inline bool tni_graph_any(void)
{
    return atomic_load_explicit(&tni_graph_recordings, memory_order_relaxed) > 0;
}

/* TN_BUSY on another thread than the recording's. */
tn_status tni_graph_own(tn_stream *stream, const char *where, tn_error *err);

/* TN_UNSUPPORTED, or TN_BUSY, for a stream that is being recorded: `why` says why this cannot be. */
tn_status tni_graph_refuse(tn_stream *stream, const char *where, const char *why, tn_error *err);

/* Whether the program itself has the platform record the stream now. What is queued is captured as it comes;
 * what waits, asks or has to run now would spoil it. Only a stream whose handle the program knows can be one. */
bool tni_capture_is_on(tn_stream *stream);

/* The program has the stream's handle from now on, or it waits for a stream of which the program has. */
void tni_capture_show(tn_stream *stream);

/* False as long as no stream can be captured. */
extern _Atomic bool tni_capture_shown;
static inline bool tni_capture_any(void)
{
    return atomic_load_explicit(&tni_capture_shown, memory_order_relaxed);
}

/* TN_UNSUPPORTED for such a stream: `why` says why this cannot be. TN_OK for any other. */
tn_status tni_capture_refuse(tn_stream *stream, const char *where, const char *why, tn_error *err);

/* Takes the step over, also when there is no memory for it. */
tn_status tni_graph_add(tn_graph *graph, const tni_graph_step *step, const char *where,
                        tn_error *err);

/* Scratch memory for a call that is recorded, which the graph keeps: calls follow one another, so that
 * one after the other uses the same. */
tn_status tni_graph_scratch(tn_graph *graph, uint64_t bytes, const char *where, void **out,
                            tn_error *err);

/* Gives a recording up, whichever thread's it is: for the end of its stream. */
void tni_graph_cancel(tn_stream *stream);

/* Ends a graph, or a recording that was taken off its stream. */
void tni_graph_destroy(tn_graph *graph);

#endif
