/* Memory: stream-ordered allocation from a driver pool, pinned host memory, and memory statistics.
 *
 * An allocation that must be valid on every stream is made on an otherwise idle stream of our own, which is then
 * synchronised. Memory that is freed without a stream must not be used by any queued work, so freeing it on that
 * stream is ordered correctly, too. */
#include "cuda.h"

static cu_result alloc_memory(const cuda_scope *scope, size_t bytes, cu_deviceptr *out)
{
    const cuda_driver *driver = &scope->self->driver;
    cu_pool pool = atomic_load(&scope->device->pool);
    cu_stream stream = atomic_load(&scope->device->alloc_stream);
    if (!pool)
        return driver->memory_alloc(out, bytes);
    cu_result code = driver->pool_alloc(out, bytes, pool, stream);
    return code ? code : driver->stream_synchronize(stream);
}

/* Returns the pool's unused memory to the system, after all pending frees on our stream are complete. */
static cu_result trim_pool(const cuda_scope *scope, cu_pool pool)
{
    const cuda_driver *driver = &scope->self->driver;
    cu_result code = driver->stream_synchronize(atomic_load(&scope->device->alloc_stream));
    return code ? code : driver->pool_trim(pool, 0);
}

/* Allocates; if out of memory, trims the pool and retries once. */
static cu_result alloc_with_retry(const cuda_scope *scope, size_t bytes, cu_deviceptr *out)
{
    cu_pool pool = atomic_load(&scope->device->pool);
    cu_result code = alloc_memory(scope, bytes, out);
    if (code != CUDA_ERROR_OUT_OF_MEMORY || !pool)
        return code;
    code = trim_pool(scope, pool);
    return code ? code : alloc_memory(scope, bytes, out);
}

tn_status cuda_memory_alloc(void *any, int32_t index, uint64_t bytes, void **out, tn_error *err)
{
    cuda_scope scope;
    cu_deviceptr memory = 0;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    cu_result code = bytes > SIZE_MAX ? CUDA_ERROR_OUT_OF_MEMORY
                                      : alloc_with_retry(&scope, (size_t)bytes, &memory);
    status = cuda_done(&scope, code, "cuMemAllocFromPoolAsync", err);
    if (!status)
        *out = (void *)(uintptr_t)memory;
    return status;
}

void cuda_memory_free(void *any, int32_t index, void *memory)
{
    cuda_scope scope;
    if (!memory || cuda_enter(any, index, &scope, NULL))
        return;
    cuda_relax(&scope);
    const cuda_driver *driver = &scope.self->driver;
    cu_deviceptr at = (cu_deviceptr)(uintptr_t)memory;
    cu_result code = atomic_load(&scope.device->pool)
                         ? driver->pool_free(at, atomic_load(&scope.device->alloc_stream))
                         : driver->memory_free(at);
    (void)cuda_done(&scope, code, "cuMemFreeAsync", NULL);
}

static cu_result alloc_on_stream(const cuda_scope *scope, size_t bytes, cu_stream stream,
                                 cu_deviceptr *out)
{
    const cuda_driver *driver = &scope->self->driver;
    cu_pool pool = atomic_load(&scope->device->pool);
    return pool ? driver->pool_alloc(out, bytes, pool, stream) : driver->memory_alloc(out, bytes);
}

/* Allocates; if out of memory, waits for the stream's pending frees, trims the pool and retries once. */
static cu_result alloc_on_stream_with_retry(const cuda_scope *scope, size_t bytes, cu_stream stream,
                                            cu_deviceptr *out)
{
    cu_pool pool = atomic_load(&scope->device->pool);
    cu_result code = alloc_on_stream(scope, bytes, stream, out);
    if (code != CUDA_ERROR_OUT_OF_MEMORY || !pool)
        return code;
    code = scope->self->driver.stream_synchronize(stream);
    if (!code)
        code = trim_pool(scope, pool);
    return code ? code : alloc_on_stream(scope, bytes, stream, out);
}

tn_status cuda_memory_alloc_on(void *any, int32_t index, void *stream, uint64_t bytes, void **out,
                               tn_error *err)
{
    cuda_scope scope;
    cu_deviceptr memory = 0;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    cu_result code = bytes > SIZE_MAX
                         ? CUDA_ERROR_OUT_OF_MEMORY
                         : alloc_on_stream_with_retry(&scope, (size_t)bytes, stream, &memory);
    status = cuda_done(&scope, code, "cuMemAllocFromPoolAsync", err);
    if (!status)
        *out = (void *)(uintptr_t)memory;
    return status;
}

/* Without a pool, only synchronising the stream keeps the free after the queued work. */
tn_status cuda_memory_free_on(void *any, int32_t index, void *stream, void *memory, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    const cuda_driver *driver = &scope.self->driver;
    const cu_deviceptr at = (cu_deviceptr)(uintptr_t)memory;
    if (atomic_load(&scope.device->pool))
        return cuda_done(&scope, driver->pool_free(at, stream), "cuMemFreeAsync", err);
    cu_result code = driver->stream_synchronize(stream);
    return cuda_done(&scope, code ? code : driver->memory_free(at), "cuMemFree_v2", err);
}

/* A device that is not open has no pool, and is not opened for this call. */
void cuda_memory_trim(void *any, int32_t index)
{
    cuda *self = any;
    cuda_scope scope;
    cu_pool pool = atomic_load(&self->devices[index].pool);
    if (!pool || cuda_enter(any, index, &scope, NULL))
        return;
    cuda_relax(&scope);
    (void)cuda_done(&scope, trim_pool(&scope, pool), "cuMemPoolTrimTo", NULL);
}

/* The allocation and the free below become nodes of the graph. */
tn_status cuda_capture_alloc(void *any, int32_t index, void *stream, uint64_t bytes, void **out,
                             tn_error *err)
{
    cuda_scope scope;
    cu_deviceptr memory = 0;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cu_pool pool = atomic_load(&scope.device->pool);
    if (!pool) {
        cuda_leave(&scope);
        return tn_fail(
            err, TN_UNSUPPORTED, 0, "cuMemAllocFromPoolAsync",
            "a call that is captured needs %llu bytes of scratch memory, and this driver "
            "has no pools to take them from; give the call a workspace",
            (unsigned long long)bytes);
    }
    cu_result code = bytes > SIZE_MAX
                         ? CUDA_ERROR_OUT_OF_MEMORY
                         : scope.self->driver.pool_alloc(&memory, (size_t)bytes, pool, stream);
    status = cuda_done(&scope, code, "cuMemAllocFromPoolAsync", err);
    if (!status)
        *out = (void *)(uintptr_t)memory;
    return status;
}

void cuda_capture_free(void *any, int32_t index, void *stream, void *memory)
{
    cuda_scope scope;
    if (cuda_enter(any, index, &scope, NULL))
        return;
    cu_result code = scope.self->driver.pool_free((cu_deviceptr)(uintptr_t)memory, stream);
    (void)cuda_done(&scope, code, "cuMemFreeAsync", NULL);
}

tn_status cuda_host_alloc(void *any, int32_t index, uint64_t bytes, void **out, tn_error *err)
{
    cuda_scope scope;
    void *memory = NULL;
    tn_status status = cuda_enter(any, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    cu_result code = bytes > SIZE_MAX ? CUDA_ERROR_OUT_OF_MEMORY
                                      : scope.self->driver.host_alloc(&memory, (size_t)bytes,
                                                                      CU_MEMHOSTALLOC_PORTABLE);
    status = cuda_done(&scope, code, "cuMemHostAlloc", err);
    if (!status)
        *out = memory;
    return status;
}

void cuda_host_free(void *any, int32_t index, void *memory)
{
    cuda_scope scope;
    if (!memory || cuda_enter(any, index, &scope, NULL))
        return;
    cuda_relax(&scope);
    (void)cuda_done(&scope, scope.self->driver.host_free(memory), "cuMemFreeHost", NULL);
}

void cuda_memory_share(const cuda_scope *scope, cuda_device *other)
{
    const cuda_driver *driver = &scope->self->driver;
    cuda_device *device = scope->device;
    const uint64_t bit = UINT64_C(1) << other->index;
    const cu_pool_access access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int reaches = 0;
    if (atomic_fetch_or(&device->peers, bit) & bit)
        return;
    if (driver->device_reaches(&reaches, device->handle, other->handle) || !reaches)
        return;
    cuda_scope aside = {.self = scope->self, .device = device};
    cuda_relax(&aside);
    (void)driver->peer_enable(atomic_load(&other->context), 0);
    cu_pool pool = atomic_load(&other->pool);
    if (pool && driver->pool_share)
        (void)driver->pool_share(pool, &access, 1);
    cuda_leave(&aside);
}

/* Does not create a context, because that would use memory itself. */
static tn_status read_memory_by_nvml(cuda *self, int32_t index, tn_device_memory *out,
                                     tn_error *err)
{
    const cuda_nvml *nvml = cuda_management(self);
    const cuda_found *found = NULL;
    nvml_memory memory;
    tn_status status = cuda_describe(self, index, &found, err);
    if (status)
        return status;
    out->total = tn_fact_of((int64_t)found->memory_bytes, "the driver");
    out->in_use = tn_fact_of(0, "the device is not in use");
    if (nvml && found->nvml && nvml->memory(found->nvml, &memory) == NVML_SUCCESS) {
        out->total = tn_fact_of((int64_t)memory.total, "NVML");
        out->available = tn_fact_of((int64_t)memory.available, "NVML");
    } else {
        out->available = tn_fact_unknown("the driver tells only once the device is in use");
    }
    return TN_OK;
}

/* Memory that the pool has reserved and does not use counts as available. */
static cu_result read_memory_by_driver(const cuda_scope *scope, tn_device_memory *out)
{
    const cuda_driver *driver = &scope->self->driver;
    cu_pool pool = atomic_load(&scope->device->pool);
    uint64_t used = 0, reserved = 0;
    size_t available = 0, total = 0;
    cu_result code = driver->memory_info(&available, &total);
    if (!code && pool)
        code = driver->pool_get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    if (!code && pool)
        code = driver->pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    if (code)
        return code;
    out->total = tn_fact_of((int64_t)total, "cuMemGetInfo");
    out->available =
        tn_fact_of((int64_t)(available + (reserved > used ? reserved - used : 0)),
                   pool ? "cuMemGetInfo, and what the pool has and does not use" : "cuMemGetInfo");
    out->in_use = pool ? tn_fact_of((int64_t)used, "what the pool has given")
                       : tn_fact_unknown("this driver has no pools, which would count");
    return CUDA_SUCCESS;
}

tn_status cuda_device_memory(void *any, int32_t index, tn_device_memory *out, tn_error *err)
{
    cuda *self = any;
    const cuda_device *device = &self->devices[index];
    cuda_scope scope;
    if (!atomic_load(&device->context) && !atomic_load(&device->faulted))
        return read_memory_by_nvml(self, index, out, err);
    tn_status status = cuda_enter(self, index, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    return cuda_done(&scope, read_memory_by_driver(&scope, out), "cuMemGetInfo_v2", err);
}
