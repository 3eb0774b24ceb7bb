/* The device's primary context: created at first use, made current for each call; also keeps the
 * device's first fault. */
#include "cuda.h"

static void lock_fault(cuda_device *device)
{
    while (atomic_flag_test_and_set_explicit(&device->fault_guard, memory_order_acquire))
        continue;
}

static void unlock_fault(cuda_device *device)
{
    atomic_flag_clear_explicit(&device->fault_guard, memory_order_release);
}

static tn_status report_fault(cuda_device *device, tn_error *err)
{
    lock_fault(device);
    if (err)
        *err = device->fault;
    unlock_fault(device);
    return TN_DEVICE_LOST;
}

/* Keeps the first fault. */
static void keep_fault(cuda_device *device, const tn_error *fault)
{
    lock_fault(device);
    if (!atomic_load(&device->faulted)) {
        device->fault = *fault;
        atomic_store_explicit(&device->faulted, true, memory_order_release);
    }
    unlock_fault(device);
}

static bool has_faulted(const cuda_device *device)
{
    return atomic_load_explicit(&device->faulted, memory_order_acquire);
}

tn_status cuda_check(const cuda_scope *scope, cu_result code, const char *call, tn_error *err)
{
    tn_error said;
    if (code == CUDA_SUCCESS)
        return TN_OK;
    tn_status status = cuda_driver_fail(&scope->self->driver, code, call, &said);
    if (status == TN_DEVICE_LOST) {
        keep_fault(scope->device, &said);
        return report_fault(scope->device, err);
    }
    if (err)
        *err = said;
    return status;
}

/* Returns the device's fault, if it has one: any call that needs the context then fails. Does not
 * disturb captures. */
static cu_result query_fault(const cuda_scope *scope)
{
    size_t available, total;
    return scope->self->driver.memory_info(&available, &total);
}

tn_status cuda_check_either(const cuda_scope *scope, cu_result code, const char *call,
                            tn_error *err)
{
    if (!cuda_is_sticky(code) || cuda_is_sticky(query_fault(scope)))
        return cuda_check(scope, code, call, err);
    return cuda_driver_fail(&scope->self->driver, code, call, err);
}

tn_status cuda_blame(const cuda_scope *scope, tn_status status, const char *call, tn_error *err)
{
    const cu_result now = status ? query_fault(scope) : CUDA_SUCCESS;
    return cuda_is_sticky(now) ? cuda_check(scope, now, call, err) : status;
}

tn_status cuda_done(const cuda_scope *scope, cu_result code, const char *call, tn_error *err)
{
    tn_status status = cuda_check(scope, code, call, err);
    cuda_leave(scope);
    return status;
}

/* Creates the pool that device memory is allocated from, and the stream for that. */
static cu_result open_pool(cuda *self, cuda_device *device)
{
    const cuda_driver *driver = &self->driver;
    const cu_pool_properties properties = {
        .allocation_type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle}};
    const cuda_found *found = NULL;
    uint64_t keep = cuda_describe(self, device->index, &found, NULL) ? 0 : found->memory_bytes / 8;
    cu_stream stream = NULL;
    cu_pool pool = NULL;
    cu_result code = driver->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (code)
        return code;
    code = driver->pool_create(&pool, &properties);
    if (!code)
        code = driver->pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    if (code) {
        if (pool)
            (void)driver->pool_destroy(pool);
        (void)driver->stream_destroy(stream);
        return code;
    }
    atomic_store(&device->alloc_stream, stream);
    atomic_store(&device->pool, pool);
    return CUDA_SUCCESS;
}

/* Without driver pools, memory is allocated without one. */
static cu_result open_memory(cuda *self, cuda_device *device)
{
    const cuda_driver *driver = &self->driver;
    int has_pools = 0;
    cu_result code = driver->device_attribute(
        &has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device->handle);
    if (code || !has_pools || !driver->pool_create || !driver->pool_alloc || !driver->pool_free ||
        !driver->pool_trim || !driver->pool_set || !driver->pool_get || !driver->pool_destroy)
        return CUDA_SUCCESS;
    return open_pool(self, device);
}

/* Creates the context and the resources that calls on it need. Leaves the caller's current context
 * unchanged. */
static cu_result open_context(cuda *self, cuda_device *device, const char **out_call)
{
    const cuda_driver *driver = &self->driver;
    cu_context context = NULL, popped;
    int least = 0, greatest = 0;
    *out_call = "cuDevicePrimaryCtxRetain";
    cu_result code = driver->primary_retain(&context, device->handle);
    if (code)
        return code;
    *out_call = "cuCtxPushCurrent_v2";
    code = driver->context_push(context);
    if (code == CUDA_SUCCESS) {
        *out_call = "cuCtxGetStreamPriorityRange";
        code = driver->priority_range(&least, &greatest);
        atomic_store(&device->least, least);
        atomic_store(&device->greatest, greatest);
        if (!code) {
            *out_call = "cuMemPoolCreate";
            code = open_memory(self, device);
        }
        (void)driver->context_pop(&popped);
    }
    if (code)
        (void)driver->primary_release(device->handle);
    else
        atomic_store_explicit(&device->context, context, memory_order_release);
    return code;
}

static tn_status open_device(cuda *self, cuda_device *device, tn_error *err)
{
    const char *call = "";
    tn_status status = cuda_start(self, err);
    if (!status)
        status = cuda_find_handle(device, err);
    if (status)
        return status;
    mtx_lock(&device->lock);
    if (!atomic_load(&device->context)) {
        cuda_scope scope = {.self = self, .device = device};
        cuda_relax(&scope);
        cu_result code = open_context(self, device, &call);
        status = cuda_done(&scope, code, call, err);
    }
    mtx_unlock(&device->lock);
    return status;
}

tn_status cuda_enter(void *any, int32_t index, cuda_scope *out, tn_error *err)
{
    cuda *self = any;
    cuda_device *device = &self->devices[index];
    if (has_faulted(device))
        return report_fault(device, err);
    cu_context context = atomic_load_explicit(&device->context, memory_order_acquire);
    if (!context) {
        tn_status status = open_device(self, device, err);
        if (status)
            return status;
        context = atomic_load_explicit(&device->context, memory_order_acquire);
    }
    *out = (cuda_scope){.self = self, .device = device};
    cu_result code = self->driver.context_get(&out->before);
    if (code)
        return cuda_check(out, code, "cuCtxGetCurrent", err);
    if (out->before == context)
        return TN_OK;
    code = self->driver.context_push(context);
    if (code)
        return cuda_check(out, code, "cuCtxPushCurrent_v2", err);
    out->pushed = true;
    return TN_OK;
}

void cuda_relax(cuda_scope *scope)
{
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    scope->relaxed = scope->self->driver.capture_mode(&scope->mode) == CUDA_SUCCESS;
}

void cuda_leave(const cuda_scope *scope)
{
    cu_context popped;
    cu_capture_mode mode = scope->mode;
    if (scope->relaxed)
        (void)scope->self->driver.capture_mode(&mode);
    if (scope->pushed)
        (void)scope->self->driver.context_pop(&popped);
}

/* Leaves the device's context current, as the caller requested. */
tn_status cuda_device_enter(void *any, int32_t index, void **out_previous, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    *out_previous = scope.before;
    if (!scope.pushed)
        return TN_OK;
    cuda_leave(&scope);
    cu_result code = scope.self->driver.context_set(atomic_load(&scope.device->context));
    return cuda_check(&scope, code, "cuCtxSetCurrent", err);
}

tn_status cuda_device_activate(void *any, int32_t index, tn_error *err)
{
    void *previous;
    return cuda_device_enter(any, index, &previous, err);
}

/* Does not use the driver's context stack: code between enter and leave may have changed it. */
void cuda_device_leave(void *any, void *previous)
{
    const cuda *self = any;
    cu_context now = NULL;
    if (self->driver.context_get(&now) != CUDA_SUCCESS || now != previous)
        (void)self->driver.context_set(previous);
}

/* Returns 1 if the primary context exists, whether we or the program created it. */
int32_t cuda_device_is_initialized(void *any, int32_t index)
{
    cuda *self = any;
    const cuda_device *device = &self->devices[index];
    unsigned flags = 0;
    int active = 0;
    if (atomic_load_explicit(&device->context, memory_order_acquire))
        return 1;
    if (!atomic_load_explicit(&self->started, memory_order_acquire))
        return 0;
    cu_result code = self->driver.primary_state(device->handle, &flags, &active);
    return code == CUDA_SUCCESS && active;
}

tn_status cuda_device_synchronize(void *any, int32_t index, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    return status ? status
                  : cuda_done(&scope, scope.self->driver.context_synchronize(), "cuCtxSynchronize",
                              err);
}

/* Clears everything that belonged to the old context, including peer access to and from other devices. */
static void forget(cuda *self, cuda_device *device)
{
    for (int32_t i = 0; i < self->count; i++)
        atomic_fetch_and(&self->devices[i].peers, ~(UINT64_C(1) << device->index));
    atomic_store(&device->context, NULL);
    atomic_store(&device->pool, NULL);
    atomic_store(&device->alloc_stream, NULL);
    atomic_store(&device->peers, 0);
    atomic_fetch_add(&device->life, 1);
}

/* The primary context is shared by the whole process: the reset also destroys what other libraries of
 * the program have on the device. A fault has made that unusable already. */
tn_status cuda_device_reset(void *any, int32_t index, tn_error *err)
{
    cuda *self = any;
    cuda_device *device = &self->devices[index];
    const cuda_driver *driver = &self->driver;
    const char *call = "cuDevicePrimaryCtxReset_v2";
    tn_status status = cuda_start(self, err);
    if (!status)
        status = cuda_find_handle(device, err);
    if (status)
        return status;
    mtx_lock(&device->lock);
    const bool faulted = has_faulted(device);
    if (atomic_load(&device->context))
        (void)driver->primary_release(device->handle);
    forget(self, device);
    cu_result code = driver->primary_reset(device->handle);
    if (!code)
        code = open_context(self, device, &call);
    if (!code)
        atomic_store(&device->faulted, false);
    mtx_unlock(&device->lock);
    if (!code)
        return TN_OK;
    tn_error said;
    (void)cuda_driver_fail(driver, code, call, &said);
    return tn_fail(err, TN_DEVICE_LOST, (int32_t)code, call, "%s: %.250s; start the process anew",
                   faulted ? "the driver keeps the fault"
                           : "it failed earlier and is not opened again",
                   said.message);
}
