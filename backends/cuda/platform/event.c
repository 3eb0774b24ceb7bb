/* Events: points in a stream, in time, and between processes. */
#include "cuda.h"

static unsigned flags_of(uint32_t flags)
{
    return (flags & TN_EVENT_TIMING ? 0 : CU_EVENT_DISABLE_TIMING) |
           (flags & TN_EVENT_BLOCKING ? CU_EVENT_BLOCKING_SYNC : 0) |
           (flags & TN_EVENT_INTERPROCESS ? CU_EVENT_INTERPROCESS : 0);
}

tn_status cuda_event_create(void *any, int32_t index, const tn_event_spec *spec, void **out,
                            tn_error *err)
{
    cuda_scope scope;
    cu_event event = NULL;
    if ((spec->flags & TN_EVENT_TIMING) && (spec->flags & TN_EVENT_INTERPROCESS))
        return tn_fail(
            err, TN_UNSUPPORTED, 0, "cuEventCreate",
            "CUDA's events for other processes take no times: create one without timing");
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cu_result code = scope.self->driver.event_create(&event, flags_of(spec->flags));
    status = cuda_done(&scope, code, "cuEventCreate", err);
    if (!status)
        *out = event;
    return status;
}

/* The driver keeps the event alive as long as queued records and waits need it. */
void cuda_event_destroy(void *any, int32_t index, void *event)
{
    cuda_scope scope;
    if (cuda_enter(any, index, &scope, NULL))
        return;
    (void)cuda_done(&scope, scope.self->driver.event_destroy(event), "cuEventDestroy_v2", NULL);
}

tn_status cuda_event_record(void *any, int32_t index, void *event, void *stream, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    return status ? status
                  : cuda_done(&scope, scope.self->driver.event_record(event, stream),
                              "cuEventRecord", err);
}

tn_status cuda_event_query(void *any, int32_t index, void *event, int32_t *out_done, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    cu_result code = scope.self->driver.event_query(event);
    bool pending = code == CUDA_ERROR_NOT_READY;
    status = cuda_done(&scope, pending ? CUDA_SUCCESS : code, "cuEventQuery", err);
    if (!status)
        *out_done = !pending;
    return status;
}

tn_status cuda_event_synchronize(void *any, int32_t index, void *event, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    return cuda_done(&scope, scope.self->driver.event_synchronize(event), "cuEventSynchronize",
                     err);
}

tn_status cuda_event_elapsed(void *any, int32_t index, void *start, void *stop, double *out_ms,
                             tn_error *err)
{
    cuda_scope scope;
    float ms = 0;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cu_result code = scope.self->driver.event_elapsed(&ms, start, stop);
    status = cuda_done(&scope, code, "cuEventElapsedTime", err);
    if (!status)
        *out_ms = (double)ms;
    return status;
}

TN_STATIC_ASSERT(sizeof(cu_event_handle) == sizeof(tn_event_handle), "one goes as the other");

tn_status cuda_event_export(void *any, int32_t index, void *event, tn_event_handle *out,
                            tn_error *err)
{
    cuda_scope scope;
    cu_event_handle handle;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cu_result code = scope.self->driver.event_export(&handle, event);
    status = cuda_done(&scope, code, "cuIpcGetEventHandle", err);
    if (!status)
        memcpy(out, &handle, sizeof *out);
    return status;
}

tn_status cuda_event_import(void *any, int32_t index, const tn_event_handle *handle, void **out,
                            tn_error *err)
{
    cuda_scope scope;
    cu_event_handle copy;
    cu_event event = NULL;
    tn_error said;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    memcpy(&copy, handle, sizeof copy);
    cu_result code = scope.self->driver.event_import(&event, copy);
    status = cuda_done(&scope, code, "cuIpcOpenEventHandle", &said);
    if (!status)
        *out = event;
    return !status ? TN_OK
                   : tn_fail(err, status, (int32_t)code, "cuIpcOpenEventHandle",
                             "%.300s; a handle opens on the device that it was made on, in another "
                             "process than its own",
                             said.message);
}
