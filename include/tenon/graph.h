/* Graphs: a sequence of Tenon's calls on one stream, recorded once and run again and again as one.
 *
 *     tn_matmul(...), tn_softmax(...)              once, or their _prepare: plans must be at hand
 *     tn_graph_begin(stream, &err)
 *     tn_matmul(...), tn_softmax(...)              nothing runs: it is written down
 *     tn_graph_end(stream, &graph, &err)
 *     tn_graph_run(graph, stream, &err)            as often as wished, on any stream of the device
 *
 * Recorded are operators, tn_memory_copy between the stream's device and itself or the host, and
 * tn_memory_fill. Each run reads and writes the memory that the calls named, host memory too: it must be
 * there then. Scratch memory that the calls need belongs to the graph. Plans, and with them all settings,
 * are those of the recording.
 *
 * Everything else on a stream that is recorded is refused with TN_UNSUPPORTED and why, and the recording
 * goes on: what waits or asks, events, random numbers (each run would have the same), another graph, what
 * goes through the host or to another device, a call whose plan is not at hand (TN_REFUSED). Waiting for a
 * whole device of which a stream is recorded is for its platform to refuse, and may spoil the recording.
 *
 * A stream that the program itself has the vendor record, as PyTorch does for CUDA graphs of its own, is
 * none of these: what is queued there becomes part of that graph, scratch memory too, and what would spoil it
 * is refused in the same way.
 *
 * Where a platform records by itself, as CUDA does, a run is one call of it; elsewhere the calls that were
 * written down are made again, one after the other.
 *
 * Thread-safety: a stream is recorded by the thread that began; what other threads queue on it meanwhile is
 * TN_BUSY. A graph may be run from any thread; its runs follow one another, also on several streams. */
#ifndef TENON_GRAPH_H
#define TENON_GRAPH_H

#include "stream.h"

TN_BEGIN_DECLS

typedef struct tn_graph tn_graph;

/* TN_BUSY for a stream that is being recorded; TN_UNSUPPORTED for a default stream: others share it. */
TN_API tn_status tn_graph_begin(tn_stream *stream, tn_error *err);

/* Ends the recording, also when it fails. The caller releases *out. */
TN_API tn_status tn_graph_end(tn_stream *stream, tn_graph **out, tn_error *err);

/* Gives the recording up. Accepts NULL, and a stream that is not recorded. Releasing the stream does the
 * same. */
TN_API void tn_graph_cancel(tn_stream *stream);

/* 1 between begin and end, on whichever thread. */
TN_API int32_t tn_graph_is_recording(const tn_stream *stream);

/* Queues all of it. NULL stream: the current one of the graph's device. When a step fails, those after it
 * are not run. TN_DEVICE_LOST for a graph from before a reset of its device. */
TN_API tn_status tn_graph_run(tn_graph *graph, tn_stream *stream, tn_error *err);

/* Waits for what runs of it. Accepts NULL; twice is a use after free. */
TN_API void tn_graph_release(tn_graph *graph);

TN_API tn_device *tn_graph_device(const tn_graph *graph);

typedef struct tn_graph_info {
    size_t struct_size;
    int64_t steps;       /* calls that were recorded                       */
    int64_t arena_bytes; /* scratch memory of the device that it holds     */
    int64_t runs;        /* so far                                         */
    int32_t native;      /* 1: the platform's own; 0: calls are made again */
    int32_t reserved;
} tn_graph_info;
TN_ENDS_WITH(tn_graph_info, reserved);

/* Set out->struct_size first. */
TN_API tn_status tn_graph_info_get(const tn_graph *graph, tn_graph_info *out, tn_error *err);

TN_END_DECLS

#endif
