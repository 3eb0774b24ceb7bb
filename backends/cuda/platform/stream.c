/* Streams. NULL is the context's legacy default stream; a program that wants the per-thread default
 * stream wraps the driver's handle for it. Our own streams do not synchronise with the default
 * stream. */
#include "cuda.h"

/* The driver's numbers decrease with urgency, and a device may have a single priority. */
static int priority_of(const cuda_device *device, int32_t priority)
{
    int least = atomic_load(&device->least);
    if (priority >= TN_PRIORITY_HIGH)
        return atomic_load(&device->greatest);
    return priority <= TN_PRIORITY_LOW || least < 0 ? least : 0;
}

tn_status cuda_stream_create(void *any, int32_t index, const tn_stream_spec *spec, void **out,
                             tn_error *err)
{
    cuda_scope scope;
    cu_stream stream = NULL;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    cu_result code = scope.self->driver.stream_create(&stream, CU_STREAM_NON_BLOCKING,
                                                      priority_of(scope.device, spec->priority));
    status = cuda_done(&scope, code, "cuStreamCreateWithPriority", err);
    if (!status)
        *out = stream;
    return status;
}

/* The driver lets queued work finish. */
void cuda_stream_destroy(void *any, int32_t index, void *stream)
{
    cuda_scope scope;
    if (cuda_enter(any, index, &scope, NULL))
        return;
    cuda_relax(&scope);
    (void)cuda_done(&scope, scope.self->driver.stream_destroy(stream), "cuStreamDestroy_v2", NULL);
}

tn_status cuda_stream_query(void *any, int32_t index, void *stream, int32_t *out_done,
                            tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    cu_result code = scope.self->driver.stream_query(stream);
    bool pending = code == CUDA_ERROR_NOT_READY;
    status = cuda_done(&scope, pending ? CUDA_SUCCESS : code, "cuStreamQuery", err);
    if (!status)
        *out_done = !pending;
    return status;
}

tn_status cuda_stream_synchronize(void *any, int32_t index, void *stream, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    return cuda_done(&scope, scope.self->driver.stream_synchronize(stream), "cuStreamSynchronize",
                     err);
}

/* The event may belong to another device, and so may a fault that is reported. */
tn_status cuda_stream_wait(void *any, int32_t index, void *stream, void *event, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    status = cuda_check_either(&scope, scope.self->driver.stream_wait(stream, event, 0),
                               "cuStreamWaitEvent", err);
    cuda_leave(&scope);
    return status;
}

/* The default stream reports CUDA_ERROR_STREAM_CAPTURE_IMPLICIT if a stream that it synchronises
 * with is being captured. */
int32_t cuda_stream_is_captured(void *any, int32_t index, void *stream)
{
    cuda_scope scope;
    cu_capture_status capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (cuda_enter(any, index, &scope, NULL))
        return 0;
    cu_result code = scope.self->driver.stream_capturing(stream, &capture);
    cuda_leave(&scope);
    return code ? code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                : capture != CU_STREAM_CAPTURE_STATUS_NONE;
}
