/* The stub's graphs: what is queued on a stream that records is written down, and done when the graph is
 * launched. */
#include "stub.h"

#include "tenon/module/philox.h"

#include <math.h>
#include <stdatomic.h>

/* As the kernel's text says, but one after another. */
static void keep(const cuda_dropout_args *of)
{
    uint16_t *out = of->out;
    uint32_t words[TN_PHILOX_WORDS];
    for (long long i = 0; i < of->elements; i++) {
        tn_philox_block(of->seed, 0, of->block + (uint64_t)i / TN_PHILOX_WORDS, words);
        out[i] = (uint16_t)(words[i % TN_PHILOX_WORDS] >> 8 >= of->least ? of->one : 0);
    }
}

static long long keys_of(const cuda_attention_args *of, int b)
{
    const cuda_table *starts = &of->starts_k, *lengths = &of->lengths;
    if (lengths->first)
        return lengths->first[b * lengths->stride];
    return starts->first[(b + 1) * starts->stride] - starts->first[b * starts->stride];
}

/* One row of OUT and LSE, of 16 and of 32 bits. */
static void empty_row(const cuda_attention_args *of, long long batch, int head, long long row)
{
    const long long *out = of->out_stride, *lse = of->lse_stride;
    const float value = of->sinks ? ((const float *)of->sinks)[head * of->sinks_stride] : -INFINITY;
    for (int e = 0; e < of->value_size; e++)
        ((uint16_t *)of->out)[batch * out[0] + head * out[1] + row * out[2] + e * out[3]] = 0;
    if (of->lse)
        ((float *)of->lse)[batch * lse[0] + head * lse[1] + row * lse[2]] = value;
}

/* As the kernel's text says, one sequence after the other. */
static void empty(const cuda_attention_args *of)
{
    const cuda_table *starts = &of->starts_q;
    for (int b = 0; b < of->batch; b++) {
        const long long first = starts->first ? starts->first[b * starts->stride] : 0;
        const long long end = starts->first ? starts->first[(b + 1) * starts->stride] : of->queries;
        for (long long row = first; keys_of(of, b) <= 0 && row < end; row++) {
            for (int head = 0; head < of->heads; head++)
                empty_row(of, starts->first ? 0 : b, head, row);
        }
    }
}

void stub_job_do(const stub_job *job)
{
    for (size_t row = 0; job->from && row < job->rows; row++)
        memcpy(job->to + row * job->to_pitch, job->from + row * job->from_pitch, job->bytes);
    for (size_t i = 0; !job->from && i < job->rows; i++)
        memcpy(job->to + i * job->bytes, job->pattern, job->bytes);
    keep(&job->dropout);
    empty(&job->empty);
    if (job->work)
        job->work(job->with);
}

stub_handle *stub_recording(cu_stream stream)
{
    stub_handle *handle = (uintptr_t)stream > 2 ? stream : NULL;
    if (handle && !handle->records)
        handle = handle->origin;
    return handle && handle->records ? handle : NULL;
}

/* What this thread may do while others, or itself, record. */
static _Thread_local cu_capture_mode thread_mode = STUB_CAPTURE_GLOBAL;

cu_result cuThreadExchangeStreamCaptureMode(cu_capture_mode *mode)
{
    cu_capture_mode before = thread_mode;
    if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static bool is_forbidden_by(const stub_handle *handle)
{
    return handle->records && handle->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
           (pthread_equal(handle->recorder, pthread_self()) ||
            (handle->mode == STUB_CAPTURE_GLOBAL && thread_mode == STUB_CAPTURE_GLOBAL));
}

cu_result stub_not_while_capturing(void)
{
    cu_result code = CUDA_SUCCESS;
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return code;
    pthread_mutex_lock(&stub.lock);
    for (stub_handle *handle = stub.all_handles; handle; handle = handle->next) {
        if (!is_forbidden_by(handle))
            continue;
        handle->spoilt = true;
        code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result stub_not_in(const stub_context *context)
{
    cu_result code = CUDA_SUCCESS;
    pthread_mutex_lock(&stub.lock);
    for (stub_handle *handle = stub.all_handles; handle; handle = handle->next) {
        if (!handle->records || handle->context != context)
            continue;
        handle->spoilt = true;
        code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&stub.lock);
    return code;
}

/* The default stream cannot be asked while one is recorded that it waits for. */
cu_result cuStreamIsCapturing(cu_stream stream, cu_capture_status *out)
{
    stub_context *context;
    cu_result code = stub_begin("cuStreamIsCapturing", &context);
    if (code || !stub_is_stream(stream, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&stub.lock);
    for (const stub_handle *h = (uintptr_t)stream <= 1 ? stub.all_handles : NULL; h; h = h->next) {
        if (h->records && h->context == context && !(h->flags & CU_STREAM_NON_BLOCKING))
            code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    pthread_mutex_unlock(&stub.lock);
    const stub_handle *recording = stub_recording(stream);
    *out = !recording          ? CU_STREAM_CAPTURE_STATUS_NONE
           : recording->spoilt ? STUB_CAPTURE_INVALIDATED
                               : STUB_CAPTURE_ACTIVE;
    return code;
}

cu_result stub_queue(cu_stream stream, const stub_job *job)
{
    stub_handle *handle = stub_recording(stream);
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

/* For the stubs of libraries, which find it by its name. */
cu_result stub_queue_work(cu_stream stream, void (*work)(void *with), void *with)
{
    return stub_queue(stream, &(stub_job){.work = work, .with = with});
}

cu_result stub_may_queue(cu_stream stream, const stub_context *context)
{
    const stub_handle *recording = stub_recording(stream);
    cu_result code =
        recording && recording->spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    pthread_mutex_lock(&stub.lock);
    for (stub_handle *h = (uintptr_t)stream <= 1 ? stub.all_handles : NULL; h; h = h->next) {
        if (!h->records || h->context != context || (h->flags & CU_STREAM_NON_BLOCKING))
            continue;
        h->spoilt = true;
        code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result stub_not_while_recording(cu_stream stream)
{
    stub_handle *handle = stub_recording(stream);
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
    pthread_mutex_lock(&stub.lock);
    handle->mode = mode;
    handle->recorder = pthread_self();
    handle->records = true;
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

/* Whoever joined is free again. */
static void leave(stub_handle *handle)
{
    pthread_mutex_lock(&stub.lock);
    handle->records = false;
    for (stub_handle *other = stub.all_handles; other; other = other->next) {
        if (other->origin == handle)
            other->origin = NULL;
    }
    pthread_mutex_unlock(&stub.lock);
}

/* The recording moves to a handle of the graph's. */
cu_result cuStreamEndCapture(cu_stream stream, cu_graph *out)
{
    stub_handle *handle = stub_recording(stream), *graph = NULL;
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
        leave(handle);
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
    cu_result code = stub_not_while_capturing();
    if (code)
        return code;
    code = stub_make("cuGraphInstantiateWithFlags", STUB_GRAPH_EXEC, 0, &made);
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

_Atomic int stub_graph_runs;

cu_result cuGraphLaunch(cu_graph_exec graph, cu_stream stream)
{
    const stub_handle *exec = graph;
    stub_context *context;
    cu_result code = stub_begin("cuGraphLaunch", &context);
    if (code || !stub_is(graph, STUB_GRAPH_EXEC, context) || !stub_is_stream(stream, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    atomic_fetch_add(&stub_graph_runs, 1);
    for (size_t i = 0; i < exec->job_count && !code; i++)
        code = stub_queue(stream, &exec->jobs[i]);
    return code;
}
