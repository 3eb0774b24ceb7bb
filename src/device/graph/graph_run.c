/* Running and releasing recorded graphs. */
#include "base/alloc.h"
#include "device/memory/memory.h"
#include "device/stream/epoch.h"
#include "device/stream/trail.h"
#include "graph.h"

static void release_words(void *object)
{
    tni_graph_words *words = object;
    if (words && tni_references_drop(&words->references))
        tni_release(words);
}

static void write_trace(const void *object, tni_buffer *out)
{
    const tni_graph_words *words = object;
    tni_buffer_format(out, "%s", words->text);
}

/* Records what ran, for the message of a fault that shows only later. */
static void leave_trace(tn_graph *graph, tn_stream *stream)
{
    tni_references_add(&graph->words->references);
    tni_trail_add(stream, &(tni_trace){graph->words, write_trace, release_words});
}

void tni_graph_destroy(tn_graph *graph)
{
    tni_call call;
    bool here = tni_device_open_to_return(graph->device, &call) && graph->epoch == call.epoch;
    if (here && graph->last)
        (void)tn_event_synchronize(graph->last, NULL);
    tn_event_release(graph->last);
    if (here && graph->platforms)
        call.row->graph_destroy(call.self, call.device, graph->platforms);
    for (size_t i = 0; i < graph->count; i++)
        graph->steps[i].release(graph->steps[i].object);
    tni_release(graph->steps);
    while (graph->arenas) {
        tni_scratch *next = graph->arenas->next;
        tni_memory_release(graph->device, graph->arenas->memory, graph->arenas->epoch);
        tni_release(graph->arenas);
        graph->arenas = next;
    }
    release_words(graph->words);
    tni_mutex_destroy(&graph->lock);
    tni_release(graph);
}

void tn_graph_release(tn_graph *graph)
{
    if (graph)
        tni_graph_destroy(graph);
}

tn_device *tn_graph_device(const tn_graph *graph)
{
    return graph ? graph->device : NULL;
}

tn_status tn_graph_info_get(const tn_graph *graph, tn_graph_info *out, tn_error *err)
{
    static const char where[] = "tn_graph_info_get";
    if (!graph || !out || !TN_HAS(out, tn_graph_info, reserved))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s",
                       !graph ? "the graph is NULL"
                       : !out ? "out is NULL"
                              : "out->struct_size is too small");
    const size_t size = out->struct_size;
    *out = (tn_graph_info){.struct_size = size,
                           .steps = (int64_t)graph->count,
                           .runs = atomic_load(&graph->runs),
                           .native = graph->native};
    for (const tni_scratch *arena = graph->arenas; arena; arena = arena->next)
        out->arena_bytes += (int64_t)arena->bytes;
    return TN_OK;
}

/* Runs share the graph's memory: this one waits for the previous one, whatever stream that was
 * queued on. */
static tn_status follow_last(tn_graph *graph, const tni_call *call, tn_stream *stream,
                             tn_error *err)
{
    if (!tni_row_has_events(call->row))
        return TN_OK;
    return graph->last ? tn_stream_wait_event(stream, graph->last, err)
                       : tn_event_create(graph->device, NULL, &graph->last, err);
}

static tn_status run_steps(tn_graph *graph, tn_stream *stream, tn_error *err)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < graph->count && !status; i++)
        status = graph->steps[i].run(graph->steps[i].object, stream, err);
    return status;
}

static tn_status run_native(tn_graph *graph, const tni_call *call, const tn_stream *stream,
                            const char *where, tn_error *err)
{
    tn_error said = {0};
    return tni_device_result_check(
        call, where,
        call->row->graph_run(call->self, call->device, graph->platforms, stream->native, &said),
        &said, err);
}

/* The next run, and the release of the graph, wait for the event recorded after this run. Must be
 * called with the lock held. */
static tn_status run(tn_graph *graph, const tni_call *call, tn_stream *stream, const char *where,
                     tn_error *err)
{
    tn_status status = follow_last(graph, call, stream, err);
    if (!status)
        status = graph->native ? run_native(graph, call, stream, where, err)
                               : run_steps(graph, stream, err);
    if (graph->last) {
        tn_status marked = tn_event_record(graph->last, stream, status ? NULL : err);
        status = status ? status : marked;
    }
    return status;
}

tn_status tn_graph_run(tn_graph *graph, tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_graph_run";
    tni_call call;
    if (!graph)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "the graph is NULL");
    tn_status status = tni_device_open(graph->device, where, &call, err);
    if (!status)
        status = tni_device_epoch_check(graph->device, graph->epoch, "graph", where, err);
    if (!status)
        status = tni_stream_for(stream, graph->device, where, &stream, err);
    if (!status)
        status = tni_capture_reject(stream, where,
                                    "its runs could not wait for the last run of this graph", err);
    if (status)
        return status;
    tni_mutex_lock(&graph->lock);
    status = run(graph, &call, stream, where, err);
    tni_mutex_unlock(&graph->lock);
    if (tni_row_has_streams(call.row))
        leave_trace(graph, stream);
    if (!status)
        atomic_fetch_add(&graph->runs, 1);
    return tni_trail_report(stream, status, err);
}
