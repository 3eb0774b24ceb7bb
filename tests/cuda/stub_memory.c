/* The stub's memory: plain blocks, pools, copies and fills. A pool gives a block that it keeps to a request
 * of the very same size, and takes new memory for any other: so that trimming it shows. */
#include "stub.h"

#include <stdatomic.h>

enum { ALIGN = 512 };

_Atomic(cu_stream) stub_taken_on, stub_freed_on;

static stub_block *find(const stub_context *context, cu_deviceptr at, size_t bytes)
{
    for (stub_block *block = context->blocks; block; block = block->next) {
        uintptr_t offset = (uintptr_t)at - (uintptr_t)block->memory;
        if (!block->is_free && offset <= block->bytes && bytes <= block->bytes - offset)
            return block;
    }
    return NULL;
}

bool stub_owns(const stub_context *context, cu_deviceptr at, size_t bytes)
{
    pthread_mutex_lock(&stub.lock);
    bool owns = find(context, at, bytes) != NULL;
    for (int i = 0; i < STUB_DEVICES_MOST && !owns; i++)
        owns = (context->peers >> i & 1) && find(&stub.contexts[i], at, bytes);
    pthread_mutex_unlock(&stub.lock);
    return owns;
}

/* With the lock held. */
static cu_result take_new(stub_context *context, size_t bytes, cu_pool pool, cu_deviceptr *out)
{
    size_t room = bytes + ALIGN;
    if (bytes > stub.memory - context->in_use || room < bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stub_block *block = calloc(1, sizeof *block);
    if (!block || posix_memalign((void **)&block->memory, ALIGN, bytes)) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->bytes = bytes;
    block->pool = pool;
    block->next = context->blocks;
    context->blocks = block;
    context->in_use += bytes;
    *out = (cu_deviceptr)(uintptr_t)block->memory;
    return CUDA_SUCCESS;
}

/* With the lock held. */
static void give(stub_context *context, stub_block *block)
{
    stub_block **at = &context->blocks;
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
    context->in_use -= block->bytes;
    free(block->memory);
    free(block);
}

cu_result cuMemGetInfo_v2(size_t *available, size_t *total)
{
    stub_context *context;
    cu_result code = stub_begin("cuMemGetInfo_v2", &context);
    if (code)
        return code;
    pthread_mutex_lock(&stub.lock);
    *available = stub.memory - context->in_use;
    *total = stub.memory;
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

cu_result cuMemAlloc_v2(cu_deviceptr *out, size_t bytes)
{
    stub_context *context;
    cu_result code = stub_begin("cuMemAlloc_v2", &context);
    if (!code)
        code = stub_not_while_capturing();
    if (code || bytes == 0)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&stub.lock);
    code = take_new(context, bytes, NULL, out);
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result cuMemFree_v2(cu_deviceptr memory)
{
    stub_context *context;
    cu_result code = stub_begin("cuMemFree_v2", &context);
    if (!code)
        code = stub_not_while_capturing();
    if (code)
        return code;
    pthread_mutex_lock(&stub.lock);
    stub_block *block = find(context, memory, 0);
    if (block && block->memory == (char *)(uintptr_t)memory)
        give(context, block);
    else
        code = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    stub_context *context;
    cu_result code = stub_begin("cuMemHostAlloc", &context);
    if (!code)
        code = stub_not_while_capturing();
    if (code || flags > 7)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    stub_block *block = calloc(1, sizeof *block);
    if (!block || bytes >= (size_t)1 << 40 ||
        posix_memalign((void **)&block->memory, ALIGN, bytes ? bytes : 1)) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&stub.lock);
    block->next = context->pinned;
    context->pinned = block;
    pthread_mutex_unlock(&stub.lock);
    *out = block->memory;
    return CUDA_SUCCESS;
}

/* Of any context: it was asked for as portable. */
cu_result cuMemFreeHost(void *memory)
{
    stub_context *context;
    stub_block *found = NULL;
    cu_result code = stub_begin("cuMemFreeHost", &context);
    if (!code)
        code = stub_not_while_capturing();
    if (code)
        return code;
    pthread_mutex_lock(&stub.lock);
    for (int i = 0; i < STUB_DEVICES_MOST && !found; i++) {
        stub_block **at = &stub.contexts[i].pinned;
        while (*at && (*at)->memory != memory)
            at = &(*at)->next;
        found = *at;
        if (found)
            *at = found->next;
    }
    pthread_mutex_unlock(&stub.lock);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    free(found->memory);
    free(found);
    return CUDA_SUCCESS;
}

static stub_pool *pool_of(cu_pool pool, const stub_context *context)
{
    stub_pool *p = pool;
    return p && p->context == context && p->life == context->life ? p : NULL;
}

cu_result cuMemPoolCreate(cu_pool *out, const cu_pool_properties *properties)
{
    stub_context *of = stub_context_of(properties->location.id);
    cu_result code = stub_begin("cuMemPoolCreate", NULL);
    if (code || !of || properties->allocation_type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !stub.pools)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    stub_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&stub.lock);
    *pool = (stub_pool){.next = stub.all_pools, .context = of, .life = of->life};
    stub.all_pools = pool;
    pthread_mutex_unlock(&stub.lock);
    *out = pool;
    return CUDA_SUCCESS;
}

cu_result cuMemPoolDestroy(cu_pool pool)
{
    pthread_mutex_lock(&stub.lock);
    stub_pool **at = &stub.all_pools;
    while (*at && *at != pool)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
    pthread_mutex_unlock(&stub.lock);
    free(pool);
    return stub_begin("cuMemPoolDestroy", NULL);
}

cu_result cuMemPoolTrimTo(cu_pool pool, size_t keep)
{
    stub_pool *p = pool;
    cu_result code = stub_begin("cuMemPoolTrimTo", NULL);
    if (!code)
        code = stub_not_while_capturing();
    if (code || !p || keep)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&stub.lock);
    for (stub_block *block = p->context->blocks, *next; block; block = next) {
        next = block->next;
        if (block->pool == pool && block->is_free)
            give(p->context, block);
    }
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

cu_result cuMemPoolSetAttribute(cu_pool pool, cu_pool_attribute which, void *value)
{
    stub_pool *p = pool;
    if (which != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&p->threshold, value, sizeof p->threshold);
    return stub_begin("cuMemPoolSetAttribute", NULL);
}

cu_result cuMemPoolGetAttribute(cu_pool pool, cu_pool_attribute which, void *value)
{
    const stub_pool *p = pool;
    uint64_t used = 0, reserved = 0;
    cu_result code = stub_begin("cuMemPoolGetAttribute", NULL);
    if (!code)
        code = stub_not_while_capturing();
    if (code)
        return code;
    pthread_mutex_lock(&stub.lock);
    for (const stub_block *block = p->context->blocks; block; block = block->next) {
        if (block->pool != pool)
            continue;
        reserved += block->bytes;
        used += block->is_free ? 0 : block->bytes;
    }
    pthread_mutex_unlock(&stub.lock);
    switch (which) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: memcpy(value, &used, sizeof used); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: memcpy(value, &reserved, sizeof reserved); break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

cu_result cuMemPoolSetAccess(cu_pool pool, const cu_pool_access *whom, size_t count)
{
    if (!pool || count != 1 || whom->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    return stub_begin("cuMemPoolSetAccess", NULL);
}

cu_result cuMemAllocFromPoolAsync(cu_deviceptr *out, size_t bytes, cu_pool pool, cu_stream stream)
{
    stub_context *context;
    cu_result code = stub_begin("cuMemAllocFromPoolAsync", &context);
    if (code)
        return code;
    if (!pool_of(pool, context) || bytes == 0 || !stub_is_stream(stream, context))
        return CUDA_ERROR_INVALID_VALUE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    atomic_store(&stub_taken_on, stream);
    pthread_mutex_lock(&stub.lock);
    stub_block *kept = context->blocks;
    while (kept && !(kept->is_free && kept->pool == pool && kept->bytes == bytes))
        kept = kept->next;
    if (kept) {
        kept->is_free = false;
        *out = (cu_deviceptr)(uintptr_t)kept->memory;
    } else {
        code = take_new(context, bytes, pool, out);
    }
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result cuMemFreeAsync(cu_deviceptr memory, cu_stream stream)
{
    stub_context *context;
    cu_result code = stub_begin("cuMemFreeAsync", &context);
    if (code || !stub_is_stream(stream, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    atomic_store(&stub_freed_on, stream);
    pthread_mutex_lock(&stub.lock);
    stub_block *block = find(context, memory, 0);
    if (block && block->memory == (char *)(uintptr_t)memory)
        block->is_free = true;
    else
        code = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&stub.lock);
    return code;
}

static bool is_pitch(size_t bytes, size_t to, size_t from)
{
    return to >= bytes && from >= bytes && to <= stub.pitch && from <= stub.pitch;
}

/* Checks and does one copy of rows. A device's side is owned by the context that is current. */
static cu_result copy(const char *call, char *to, bool to_host, const char *from, bool from_host,
                      const size_t shape[4], cu_stream stream)
{
    size_t bytes = shape[0], rows = shape[1], to_pitch = shape[2], from_pitch = shape[3];
    stub_context *context;
    cu_result code = stub_begin(call, &context);
    if (code)
        return code;
    if (!stub_is_stream(stream, context))
        return CUDA_ERROR_INVALID_HANDLE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    if (rows > 1 && !is_pitch(bytes, to_pitch, from_pitch))
        return CUDA_ERROR_INVALID_VALUE;
    if (!to_host && !stub_owns(context, (cu_deviceptr)(uintptr_t)to, (rows - 1) * to_pitch + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!from_host &&
        !stub_owns(context, (cu_deviceptr)(uintptr_t)from, (rows - 1) * from_pitch + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return stub_queue(stream, &(stub_job){.to = to,
                                          .from = from,
                                          .bytes = bytes,
                                          .rows = rows,
                                          .to_pitch = to_pitch,
                                          .from_pitch = from_pitch});
}

static char *at(cu_deviceptr memory)
{
    return (char *)(uintptr_t)memory;
}

cu_result cuMemcpyHtoDAsync_v2(cu_deviceptr to, const void *from, size_t bytes, cu_stream stream)
{
    return copy("cuMemcpyHtoDAsync_v2", at(to), false, from, true, (size_t[4]){bytes, 1, 0, 0},
                stream);
}

cu_result cuMemcpyDtoHAsync_v2(void *to, cu_deviceptr from, size_t bytes, cu_stream stream)
{
    return copy("cuMemcpyDtoHAsync_v2", to, true, at(from), false, (size_t[4]){bytes, 1, 0, 0},
                stream);
}

cu_result cuMemcpyDtoDAsync_v2(cu_deviceptr to, cu_deviceptr from, size_t bytes, cu_stream stream)
{
    return copy("cuMemcpyDtoDAsync_v2", at(to), false, at(from), false, (size_t[4]){bytes, 1, 0, 0},
                stream);
}

cu_result cuMemcpy2DAsync_v2(const cu_copy_2d *c, cu_stream stream)
{
    bool to_host = c->to_type == CU_MEMORYTYPE_HOST, from_host = c->from_type == CU_MEMORYTYPE_HOST;
    return copy("cuMemcpy2DAsync_v2", to_host ? c->to_host : at(c->to_device), to_host,
                from_host ? c->from_host : at(c->from_device), from_host,
                (size_t[4]){c->width, c->height, c->to_pitch, c->from_pitch}, stream);
}

/* Each side is of its own context, whose fault comes out here; where they do not reach each other the driver goes through the host. */
static cu_result copy_peer(const char *call, char *to, const stub_context *to_context,
                           const char *from, const stub_context *from_context,
                           const size_t shape[4], cu_stream stream)
{
    stub_context *context;
    size_t to_span = (shape[1] - 1) * shape[2] + shape[0];
    size_t from_span = (shape[1] - 1) * shape[3] + shape[0];
    cu_result code = stub_begin(call, &context);
    if (!code)
        code = to_context->fault ? to_context->fault : from_context->fault;
    if (code)
        return code;
    if (shape[1] > 1 && !is_pitch(shape[0], shape[2], shape[3]))
        return CUDA_ERROR_INVALID_VALUE;
    if (!stub_is_stream(stream, to_context) && !stub_is_stream(stream, from_context))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!stub_owns(to_context, (cu_deviceptr)(uintptr_t)to, to_span) ||
        !stub_owns(from_context, (cu_deviceptr)(uintptr_t)from, from_span))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t row = 0; row < shape[1]; row++)
        memcpy(to + row * shape[2], from + row * shape[3], shape[0]);
    return CUDA_SUCCESS;
}

cu_result cuMemcpyPeerAsync(cu_deviceptr to, cu_context to_context, cu_deviceptr from,
                            cu_context from_context, size_t bytes, cu_stream stream)
{
    return copy_peer("cuMemcpyPeerAsync", at(to), to_context, at(from), from_context,
                     (size_t[4]){bytes, 1, 0, 0}, stream);
}

cu_result cuMemcpy3DPeerAsync(const cu_copy_peer *c, cu_stream stream)
{
    return c->depth != 1
               ? CUDA_ERROR_INVALID_VALUE
               : copy_peer("cuMemcpy3DPeerAsync", at(c->to_device), c->to_context,
                           at(c->from_device), c->from_context,
                           (size_t[4]){c->width, c->height, c->to_pitch, c->from_pitch}, stream);
}

static cu_result fill(const char *call, cu_deviceptr to, const void *pattern, size_t size,
                      size_t count, cu_stream stream)
{
    stub_context *context;
    cu_result code = stub_begin(call, &context);
    if (code)
        return code;
    if (!stub_is_stream(stream, context))
        return CUDA_ERROR_INVALID_HANDLE;
    if (to % size || !stub_owns(context, to, size * count))
        return CUDA_ERROR_INVALID_VALUE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    stub_job job = {.to = at(to), .bytes = size, .rows = count};
    memcpy(job.pattern, pattern, size);
    return stub_queue(stream, &job);
}

cu_result cuMemsetD8Async(cu_deviceptr to, unsigned char value, size_t count, cu_stream stream)
{
    return fill("cuMemsetD8Async", to, &value, sizeof value, count, stream);
}

cu_result cuMemsetD16Async(cu_deviceptr to, unsigned short value, size_t count, cu_stream stream)
{
    return fill("cuMemsetD16Async", to, &value, sizeof value, count, stream);
}

cu_result cuMemsetD32Async(cu_deviceptr to, unsigned value, size_t count, cu_stream stream)
{
    return fill("cuMemsetD32Async", to, &value, sizeof value, count, stream);
}
