/* The stub's start, devices and contexts. */
#include "stub.h"

#include <unistd.h>

stub_state stub = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local stub_context *stack[STUB_DEPTH];
static _Thread_local int depth;

static void uuid_text(int physical, char out[48])
{
    unsigned char b[16];
    stub_uuid(physical, b);
    snprintf(out, 48, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             stub.split ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9],
             b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* The driver's order: the fastest first, unless it is told to go by the bus. */
static int ordered(int index)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    if (!stub.mixed || (order && strcmp(order, "PCI_BUS_ID") == 0))
        return index;
    return index == 0 ? stub.physical - 1 : index - 1;
}

/* The device that an entry of CUDA_VISIBLE_DEVICES names; -1 for none. */
static int named(const char *entry, size_t length)
{
    char uuid[48];
    if (length > 0 && entry[0] >= '0' && entry[0] <= '9') {
        int index = atoi(entry);
        return index < stub.physical ? ordered(index) : -1;
    }
    for (int i = 0; i < stub.physical && length > 4; i++) {
        uuid_text(i, uuid);
        if (strncmp(uuid, entry, length) == 0)
            return i;
    }
    return -1;
}

static void see(void)
{
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    stub.count = 0;
    for (int i = 0; !at && i < stub.physical; i++)
        stub.visible[stub.count++] = ordered(i);
    while (at && *at && stub.count < STUB_DEVICES_MOST) {
        size_t length = strcspn(at, ",");
        int index = named(at, length);
        if (index < 0)
            return;
        for (int i = 0; i < stub.count; i++) {
            if (stub.visible[i] == index) {
                stub.count = 0;
                return;
            }
        }
        stub.visible[stub.count++] = index;
        at += length + (at[length] == ',');
    }
}

cu_result cuInit(unsigned flags)
{
    cu_result code = (cu_result)stub_number("STUB_INIT", CUDA_SUCCESS);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (code)
        return code;
    pthread_mutex_lock(&stub.lock);
    if (!stub.started) {
        stub_read_environment(&stub);
        see();
        for (int i = 0; i < STUB_DEVICES_MOST; i++)
            stub.contexts[i].ordinal = i;
        stub.started = true;
    }
    code = stub.count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result cuDriverGetVersion(int *out)
{
    *out = (int)stub_number("STUB_VERSION", 13000);
    return CUDA_SUCCESS;
}

static void write_log(const char *call)
{
    FILE *file = stub.log ? fopen(stub.log, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\n", call);
    fclose(file);
}

cu_result stub_begin(const char *call, stub_context **out)
{
    stub_context *now = depth > 0 ? stack[depth - 1] : NULL;
    if (!stub.started)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&stub.lock);
    write_log(call);
    if (stub.lose && now && now->ordinal == stub.visible[0] && !now->fault && out &&
        unlink(stub.lose) == 0)
        now->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    cu_result code = !out             ? CUDA_SUCCESS
                     : !now           ? CUDA_ERROR_INVALID_CONTEXT
                     : !now->retained ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                      : now->fault;
    pthread_mutex_unlock(&stub.lock);
    if (out)
        *out = now;
    return code;
}

stub_context *stub_context_of(cu_device device)
{
    return device >= 0 && device < stub.count ? &stub.contexts[stub.visible[device]] : NULL;
}

cu_result cuGetErrorName(cu_result code, const char **out)
{
#define CUDA_NUMBER_(name, value)                                               \
    if (code == (cu_result)(value) && strncmp(#name, "CUDA_ERROR_", 11) == 0) { \
        *out = #name;                                                           \
        return CUDA_SUCCESS;                                                    \
    }
    CUDA_NUMBER_LIST(CUDA_NUMBER_)
#undef CUDA_NUMBER_
    return CUDA_ERROR_INVALID_VALUE;
}

cu_result cuGetErrorString(cu_result code, const char **out)
{
    *out = code == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                              : "the stub says so";
    return CUDA_SUCCESS;
}

/* NVIDIA's compiler asks the driver for a table of its own, and takes it for granted. */
cu_result cuGetExportTable(const void **out, const void *id);
cu_result cuGetExportTable(const void **out, const void *id)
{
    (void)out, (void)id;
    return CUDA_ERROR_NOT_SUPPORTED;
}

cu_result cuDeviceGet(cu_device *out, int ordinal)
{
    cu_result code = stub_begin("cuDeviceGet", NULL);
    if (!code && !stub_context_of(ordinal))
        code = CUDA_ERROR_INVALID_DEVICE;
    if (!code)
        *out = ordinal;
    return code;
}

cu_result cuDeviceGetCount(int *out)
{
    cu_result code = stub_begin("cuDeviceGetCount", NULL);
    if (!code)
        *out = stub.count;
    return code;
}

cu_result cuDeviceGetName(char *out, int size, cu_device device)
{
    const stub_context *context = stub_context_of(device);
    if (!context)
        return CUDA_ERROR_INVALID_DEVICE;
    stub_name(&stub, context->ordinal, out, (size_t)size);
    return CUDA_SUCCESS;
}

cu_result cuDeviceGetUuid_v2(cu_uuid *out, cu_device device)
{
    const stub_context *context = stub_context_of(device);
    if (!context)
        return CUDA_ERROR_INVALID_DEVICE;
    stub_uuid(context->ordinal, (unsigned char *)out->bytes);
    return CUDA_SUCCESS;
}

cu_result cuDeviceTotalMem_v2(size_t *out, cu_device device)
{
    if (!stub_context_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = stub.memory;
    return CUDA_SUCCESS;
}

cu_result cuDeviceGetPCIBusId(char *out, int size, cu_device device)
{
    const stub_context *context = stub_context_of(device);
    if (!context)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(out, (size_t)size, "0000:%02X:00.0", 0x3B + (unsigned)context->ordinal);
    return CUDA_SUCCESS;
}

cu_result cuDeviceGetAttribute(int *out, cu_device_attribute which, cu_device device)
{
    if (!stub_context_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = 1024; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *out = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: *out = (int)stub.pitch; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *out = 1000000; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *out = 4; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *out = 0; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *out = 1000000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *out = 64; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *out = 1 << 20; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *out = 2048; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *out = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *out = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *out = 228 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *out = 65536; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *out = 227 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *out = stub.pools; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

cu_result cuDeviceCanAccessPeer(int *out, cu_device device, cu_device peer)
{
    if (!stub_context_of(device) || !stub_context_of(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = stub.peers && device != peer;
    return CUDA_SUCCESS;
}

cu_result cuDevicePrimaryCtxRetain(cu_context *out, cu_device device)
{
    stub_context *context = stub_context_of(device);
    cu_result code = stub_begin("cuDevicePrimaryCtxRetain", NULL);
    if (code || !context)
        return code ? code : CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&stub.lock);
    code = stub.full && unlink(stub.full) == 0 ? CUDA_ERROR_OUT_OF_MEMORY : context->fault;
    context->retained += !code;
    pthread_mutex_unlock(&stub.lock);
    if (!code)
        *out = context;
    return code;
}

static void free_blocks(stub_block **list)
{
    for (stub_block *block = *list, *next; block; block = next) {
        next = block->next;
        free(block->memory);
        free(block);
    }
    *list = NULL;
}

/* With the lock held. What the context had goes with it. */
static void end_context(stub_context *context)
{
    free_blocks(&context->blocks);
    free_blocks(&context->pinned);
    context->in_use = 0;
    context->fault = CUDA_SUCCESS;
    context->life++;
    context->peers = 0;
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    stub_context *context = stub_context_of(device);
    cu_result code = stub_begin("cuDevicePrimaryCtxRelease_v2", NULL);
    if (code || !context)
        return code ? code : CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&stub.lock);
    code = context->retained > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if (!code && --context->retained == 0)
        end_context(context);
    pthread_mutex_unlock(&stub.lock);
    return code;
}

cu_result cuDevicePrimaryCtxReset_v2(cu_device device)
{
    stub_context *context = stub_context_of(device);
    cu_result code = stub_begin("cuDevicePrimaryCtxReset_v2", NULL);
    if (code || !context)
        return code ? code : CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&stub.lock);
    end_context(context);
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

cu_result cuDevicePrimaryCtxGetState(cu_device device, unsigned *flags, int *active)
{
    const stub_context *context = stub_context_of(device);
    if (!context)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&stub.lock);
    *flags = 0;
    *active = context->retained > 0;
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

cu_result cuCtxGetCurrent(cu_context *out)
{
    if (!stub.started)
        return CUDA_ERROR_NOT_INITIALIZED;
    *out = depth > 0 ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

cu_result cuCtxSetCurrent(cu_context context)
{
    cu_result code = stub_begin("cuCtxSetCurrent", NULL);
    if (code)
        return code;
    if (depth > 0)
        depth--;
    if (context)
        stack[depth++] = context;
    return CUDA_SUCCESS;
}

cu_result cuCtxPushCurrent_v2(cu_context context)
{
    cu_result code = stub_begin("cuCtxPushCurrent_v2", NULL);
    if (code || !context || depth == STUB_DEPTH)
        return code ? code : CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

cu_result cuCtxPopCurrent_v2(cu_context *out)
{
    cu_result code = stub_begin("cuCtxPopCurrent_v2", NULL);
    if (code || depth == 0)
        return code ? code : CUDA_ERROR_INVALID_CONTEXT;
    *out = stack[--depth];
    return CUDA_SUCCESS;
}

cu_result cuCtxSynchronize(void)
{
    stub_context *context;
    cu_result code = stub_begin("cuCtxSynchronize", &context);
    return code ? code : stub_not_in(context);
}

cu_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    stub_context *context;
    cu_result code = stub_begin("cuCtxGetStreamPriorityRange", &context);
    if (code)
        return code;
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

cu_result cuCtxEnablePeerAccess(cu_context peer, unsigned flags)
{
    stub_context *context, *other = peer;
    cu_result code = stub_begin("cuCtxEnablePeerAccess", &context);
    if (!code)
        code = stub_not_while_capturing();
    if (code || flags || !stub.peers)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&stub.lock);
    code = context->peers >> other->ordinal & 1 ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                                                : CUDA_SUCCESS;
    context->peers |= 1u << other->ordinal;
    pthread_mutex_unlock(&stub.lock);
    return code;
}
