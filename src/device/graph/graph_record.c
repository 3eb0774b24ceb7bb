/* Recording of a graph, from tn_graph_begin to tn_graph_end. */
#include "base/alloc.h"
#include "device/memory/memory.h"
#include "device/stream/current.h"
#include "device/stream/epoch.h"
#include "graph.h"

tn_status tni_graph_add(tn_graph *graph, const tni_graph_step *step, const char *where,
                        tn_error *err)
{
    if (!tni_array_reserve((void **)&graph->steps, &graph->capacity, graph->count, graph->count + 1,
                           sizeof *graph->steps)) {
        step->release(step->object);
        return tni_no_memory(err, where, "a step of a graph");
    }
    graph->steps[graph->count++] = *step;
    return TN_OK;
}

tn_status tni_graph_scratch(tn_graph *graph, uint64_t bytes, const char *where, void **out,
                            tn_error *err)
{
    if (graph->arenas && graph->arenas->bytes >= bytes) {
        *out = graph->arenas->memory;
        return TN_OK;
    }
    tni_scratch *made = tni_alloc_zeroed(1, sizeof *made);
    if (!made)
        return tni_no_memory(err, where, "a graph's memory");
    made->bytes = bytes;
    tn_status status =
        tni_memory_acquire(graph->device, bytes, "graph", &made->memory, &made->epoch, err);
    if (status) {
        tni_release(made);
        return status;
    }
    made->next = graph->arenas;
    graph->arenas = made;
    *out = made->memory;
    return TN_OK;
}

static tn_status check_stream(const tn_stream *stream, const char *where, tni_call *out,
                              tn_error *err)
{
    tn_status status = tni_stream_open_any(stream, where, out, err);
    if (!status && stream->kind == TNI_STREAM_STANDARD)
        status = tn_fail(
            err, TN_UNSUPPORTED, 0, where,
            "the default stream of %s is shared and cannot be recorded; record on a stream of your "
            "own (tn_stream_create)",
            stream->device->id);
    return status;
}

static tn_status begin_native(tn_stream *stream, const tni_call *call, const char *where,
                              tn_error *err)
{
    tn_error said = {0};
    tn_status status =
        tni_capture_reject(stream, where, "a second recording cannot start on it", err);
    if (status || !call->row->graph_begin)
        return status;
    return tni_device_result_check(
        call, where, call->row->graph_begin(call->self, call->device, stream->native, &said), &said,
        err);
}

/* The exchange claims the stream for this thread; undone if the platform refuses. */
tn_status tn_graph_begin(tn_stream *stream, tn_error *err)
{
    static const char where[] = "tn_graph_begin";
    int32_t none = 0;
    tni_call call;
    tn_status status = check_stream(stream, where, &call, err);
    if (status)
        return status;
    tn_graph *graph = tni_alloc_zeroed(1, sizeof *graph);
    if (!graph)
        return tni_no_memory(err, where, "a graph");
    graph->device = stream->device;
    graph->epoch = call.epoch;
    graph->native = call.row->graph_begin != NULL;
    tni_mutex_init(&graph->lock);
    if (!atomic_compare_exchange_strong(&stream->recorder, &none, tni_current_thread()))
        status = tn_fail(err, TN_BUSY, 0, where,
                         "a graph is already being recorded on this stream of %s; end it "
                         "first, or record on another stream",
                         stream->device->id);
    else if ((status = begin_native(stream, &call, where, err)))
        atomic_store_explicit(&stream->recorder, 0, memory_order_release);
    if (status) {
        tni_graph_destroy(graph);
        return status;
    }
    atomic_fetch_add(&tni_graph_recordings, 1);
    atomic_store_explicit(&stream->recording, graph, memory_order_release);
    return TN_OK;
}

/* Takes the recording off its stream, and makes the platform end its own recording; `keep` says
 * whether to keep the result. */
static tn_status detach_recording(tn_stream *stream, tn_graph *graph, bool keep, const char *where,
                                  tn_error *err)
{
    tn_error said = {0};
    tni_call call;
    tn_status status = TN_OK;
    if (graph->native && !keep) {
        if (tni_device_open_to_return(stream->device, &call) && graph->epoch == call.epoch)
            (void)call.row->graph_end(call.self, call.device, stream->native, NULL, &said);
    } else if (graph->native) {
        status = tni_device_open(stream->device, where, &call, err);
        if (!status)
            status = tni_device_epoch_check(stream->device, graph->epoch, "recording", where, err);
        if (!status)
            status =
                tni_device_result_check(&call, where,
                                        call.row->graph_end(call.self, call.device, stream->native,
                                                            &graph->platforms, &said),
                                        &said, err);
        if (!status && !graph->platforms)
            status = tn_fail(err, TN_INTERNAL, 0, where, "%s recorded a graph but returned none",
                             stream->device->id);
    }
    atomic_store_explicit(&stream->recording, NULL, memory_order_release);
    atomic_store_explicit(&stream->recorder, 0, memory_order_release);
    atomic_fetch_sub(&tni_graph_recordings, 1);
    return status;
}

/* "a graph of 12 calls: ...; ...; ...", listing the first few. */
static tn_status write_words(tn_graph *graph, const char *where, tn_error *err)
{
    enum { SHOWN = 4 };
    tni_buffer text = {0};
    tni_buffer_format(&text, "a graph of %zu calls", graph->count);
    for (size_t i = 0; i < graph->count && i < SHOWN; i++) {
        tni_buffer_format(&text, "%s", i ? "; " : ": ");
        graph->steps[i].write(graph->steps[i].object, &text);
    }
    if (graph->count > SHOWN)
        tni_buffer_format(&text, "; ...");
    const char *written = tni_buffer_text(&text);
    size_t size = strlen(written) + 1;
    graph->words = tni_alloc(sizeof *graph->words + size);
    if (graph->words) {
        tni_references_init(&graph->words->references);
        memcpy(graph->words->text, written, size);
    }
    tni_buffer_release(&text);
    return graph->words ? TN_OK : tni_no_memory(err, where, "a graph's text");
}

tn_status tn_graph_end(tn_stream *stream, tn_graph **out, tn_error *err)
{
    static const char where[] = "tn_graph_end";
    if (!stream || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL",
                       stream ? "out" : "the stream");
    if (!tn_graph_is_recording(stream))
        return tn_fail(err, TN_NOT_FOUND, 0, where,
                       "no graph is being recorded on this stream of %s; call tn_graph_begin first",
                       stream->device->id);
    tn_status status = tni_graph_own(stream, where, err);
    if (status)
        return status;
    tn_graph *graph = tni_graph_of(stream);
    status = detach_recording(stream, graph, true, where, err);
    if (!status)
        status = write_words(graph, where, err);
    if (status)
        tni_graph_destroy(graph);
    else
        *out = graph;
    return status;
}

void tni_graph_cancel(tn_stream *stream)
{
    tn_graph *graph = tni_graph_of(stream);
    if (!graph)
        return;
    (void)detach_recording(stream, graph, false, "tn_graph_cancel", NULL);
    tni_graph_destroy(graph);
}

void tn_graph_cancel(tn_stream *stream)
{
    if (stream && tn_graph_is_recording(stream) &&
        tni_graph_own(stream, "tn_graph_cancel", NULL) == TN_OK)
        tni_graph_cancel(stream);
}
