/* The stub's graphs: what is queued on a stream that records is written down, and done when the graph is
 * launched. */
#include "stub.h"

void stub_job_do(const stub_job *job)
{
    for (size_t row = 0; job->from && row < job->rows; row++)
        memcpy(job->to + row * job->to_pitch, job->from + row * job->from_pitch, job->bytes);
    for (size_t i = 0; !job->from && i < job->rows; i++)
        memcpy(job->to + i * job->bytes, job->pattern, job->bytes);
}

/* The handle of a stream that records; NULL for any other. */
static stub_handle *recording(cu_stream stream)
{
    stub_handle *handle = (uintptr_t)stream > 2 ? stream : NULL;
    return handle && handle->records ? handle : NULL;
}

cu_result stub_queue(cu_stream stream, const stub_job *job)
{
    stub_handle *handle = recording(stream);
    if (!handle) {
        stub_job_do(job);
        return CUDA_SUCCESS;
    }
    stub_job *grown = realloc(handle->jobs, (handle->job_count + 1) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    grown[handle->job_count++] = *job;
    handle->jobs = grown;
    return CUDA_SUCCESS;
}

cu_result stub_not_while_recording(cu_stream stream)
{
    stub_handle *handle = recording(stream);
    if (!handle)
        return CUDA_SUCCESS;
    handle->spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

cu_result cuStreamBeginCapture_v2(cu_stream stream, cu_capture_mode mode)
{
    stub_context *context;
    cu_result code = stub_begin("cuStreamBeginCapture_v2", &context);
    stub_handle *handle = stream;
    if (code || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    if ((uintptr_t)stream <= 1)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!stub_is(stream, STUB_STREAM, context) || handle->records)
        return CUDA_ERROR_INVALID_HANDLE;
    handle->records = true;
    return CUDA_SUCCESS;
}

/* The recording moves to a handle of the graph's. */
cu_result cuStreamEndCapture(cu_stream stream, cu_graph *out)
{
    stub_handle *handle = recording(stream), *graph = NULL;
    void *made = NULL;
    cu_result code = stub_make("cuStreamEndCapture", STUB_GRAPH, 0, &made);
    if (code)
        return code;
    *out = NULL;
    graph = made;
    if (handle) {
        graph->jobs = handle->jobs;
        graph->job_count = handle->job_count;
        handle->jobs = NULL;
        handle->job_count = 0;
        handle->records = false;
    }
    if (!handle || handle->spoilt) {
        if (handle)
            handle->spoilt = false;
        (void)cuGraphDestroy(made);
        return handle ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_INVALID_VALUE;
    }
    *out = made;
    return CUDA_SUCCESS;
}

cu_result cuGraphInstantiateWithFlags(cu_graph_exec *out, cu_graph graph, unsigned long long flags)
{
    const stub_handle *from = graph;
    void *made = NULL;
    if (flags || !from || from->kind != STUB_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    cu_result code = stub_make("cuGraphInstantiateWithFlags", STUB_GRAPH_EXEC, 0, &made);
    if (code)
        return code;
    stub_handle *exec = made;
    for (size_t i = 0; i < from->job_count; i++) {
        exec->records = true; /* as a stream that keeps what is queued */
        code = code ? code : stub_queue(exec, &from->jobs[i]);
    }
    exec->records = false;
    *out = exec;
    return code;
}

cu_result cuGraphDestroy(cu_graph graph)
{
    return stub_end("cuGraphDestroy", STUB_GRAPH, graph);
}

cu_result cuGraphExecDestroy(cu_graph_exec graph)
{
    return stub_end("cuGraphExecDestroy", STUB_GRAPH_EXEC, graph);
}

cu_result cuGraphLaunch(cu_graph_exec graph, cu_stream stream)
{
    const stub_handle *exec = graph;
    stub_context *context;
    cu_result code = stub_begin("cuGraphLaunch", &context);
    if (code || !stub_is(graph, STUB_GRAPH_EXEC, context) || !stub_is_stream(stream, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < exec->job_count && !code; i++)
        code = stub_queue(stream, &exec->jobs[i]);
    return code;
}
