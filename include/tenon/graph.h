/* Graphs: a sequence of Tenon calls on one stream, recorded once and run repeatedly as one unit.
 *
 *     tn_unary(...), tn_softmax(...)               once, or their _prepare: plans must exist
 *     tn_graph_begin(stream, &err)
 *     tn_unary(...), tn_softmax(...)               recorded, not run
 *     tn_graph_end(stream, &graph, &err)
 *     tn_graph_run(graph, stream, &err)            any number of times, on any stream of the device
 *
 * Recorded calls: operators, tn_memory_copy between the stream's device and itself or the host, and
 * tn_memory_fill. Each run reads and writes the memory that the calls named, including host memory,
 * so that memory must still exist then. The graph owns the scratch memory that the calls need.
 * Plans, and so all settings, are those of the time of recording.
 *
 * Every other call on a stream that is being recorded fails with TN_UNSUPPORTED and a reason, and
 * the recording continues: waits and queries, events, random numbers (each run would produce the
 * same numbers), another graph, and copies through the host or to another device. A call whose plan
 * does not exist yet fails with TN_REFUSED. Waiting for a whole device while one of its streams is
 * being recorded is left to the platform to refuse, and may invalidate the recording.
 *
 * This does not apply to a stream that the program itself captures with the vendor's API, as
 * PyTorch does for its own CUDA graphs. Work queued there, including its scratch memory, becomes
 * part of that graph, and calls that would invalidate the capture are refused in the same way.
 *
 * If the platform can record, as CUDA can, a run is one call of its API; otherwise the recorded
 * calls are repeated one after the other.
 *
 * Thread-safety: a stream is recorded by the thread that began the recording; work that other
 * threads queue on it meanwhile fails with TN_BUSY. A graph may be run from any thread; its runs
 * are serialized, also across streams. */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include "stream.h"

TN_BEGIN_DECLS

typedef struct tn_graph tn_graph;

/* Fails with TN_BUSY if the stream is already being recorded; with TN_UNSUPPORTED for a default
 * stream, because it is shared. */
TN_API tn_status tn_graph_begin(tn_stream *stream, tn_error *err);

/* Ends the recording, even if it fails. The caller must release *out. */
TN_API tn_status tn_graph_end(tn_stream *stream, tn_graph **out, tn_error *err);

/* Discards the recording. Accepts NULL and a stream that is not being recorded. Releasing the
 * stream does the same. */
TN_API void tn_graph_cancel(tn_stream *stream);

/* 1 between begin and end, from any thread. */
TN_API int32_t tn_graph_is_recording(const tn_stream *stream);

/* Queues the whole graph. NULL stream: the current stream of the graph's device. If a step fails,
 * the steps after it are not run. Fails with TN_DEVICE_LOST if the graph was made before a reset of
 * its device. */
TN_API tn_status tn_graph_run(tn_graph *graph, tn_stream *stream, tn_error *err);

/* Waits for its unfinished runs. Accepts NULL; a second release is a use after free. */
TN_API void tn_graph_release(tn_graph *graph);

TN_API tn_device *tn_graph_device(const tn_graph *graph);

typedef struct tn_graph_info {
    size_t struct_size;
    int64_t steps;       /* number of recorded calls                           */
    int64_t arena_bytes; /* device scratch memory that it owns                 */
    int64_t runs;        /* number of runs so far                              */
    int32_t native;      /* 1: recorded by the platform; 0: calls are repeated */
    int32_t reserved;
} tn_graph_info;
TN_ENDS_WITH(tn_graph_info, reserved);

/* Set out->struct_size first. */
TN_API tn_status tn_graph_info_get(const tn_graph *graph, tn_graph_info *out, tn_error *err);

TN_END_DECLS

#endif
