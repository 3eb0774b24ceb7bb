/* The stub's streams, events and modules. */
#include "stub.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

bool stub_is(const void *handle, int kind, const stub_context *context)
{
    const stub_handle *h = handle;
    return h && h->kind == kind && h->context == context && h->life == context->life;
}

bool stub_is_stream(const void *stream, const stub_context *context)
{
    return (uintptr_t)stream <= 2 || stub_is(stream, STUB_STREAM, context);
}

cu_result stub_make(const char *call, int kind, unsigned flags, void **out)
{
    stub_context *context;
    cu_result code = stub_begin(call, &context);
    if (code)
        return code;
    stub_handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&stub.lock);
    *handle = (stub_handle){.next = stub.all_handles,
                            .kind = kind,
                            .context = context,
                            .life = context->life,
                            .flags = flags};
    stub.all_handles = handle;
    pthread_mutex_unlock(&stub.lock);
    *out = handle;
    return CUDA_SUCCESS;
}

/* The kind goes too, so that a handle that is used after it went shows where memory is not used anew. */
cu_result stub_end(const char *call, int kind, void *handle)
{
    stub_context *context;
    cu_result code = stub_begin(call, &context);
    if (code || !stub_is(handle, kind, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&stub.lock);
    stub_handle **at = &stub.all_handles;
    while (*at != handle)
        at = &(*at)->next;
    *at = (*at)->next;
    ((stub_handle *)handle)->kind = 0;
    pthread_mutex_unlock(&stub.lock);
    free(((stub_handle *)handle)->jobs);
    free(handle);
    return CUDA_SUCCESS;
}

/* A call on one stream. */
static cu_result on_stream(const char *call, cu_stream stream)
{
    stub_context *context;
    cu_result code = stub_begin(call, &context);
    return code || stub_is_stream(stream, context) ? code : CUDA_ERROR_INVALID_HANDLE;
}

cu_result cuStreamCreateWithPriority(cu_stream *out, unsigned flags, int priority)
{
    (void)priority; /* what is beyond the range counts as its end */
    cu_result code =
        flags > CU_STREAM_NON_BLOCKING ? CUDA_ERROR_INVALID_VALUE : stub_not_while_capturing();
    return code ? code : stub_make("cuStreamCreateWithPriority", STUB_STREAM, flags, out);
}

cu_result cuStreamDestroy_v2(cu_stream stream)
{
    return stub_end("cuStreamDestroy_v2", STUB_STREAM, stream);
}

cu_result cuStreamQuery(cu_stream stream)
{
    cu_result code = on_stream("cuStreamQuery", stream);
    if (!code)
        code = stub_not_while_recording(stream);
    return code ? code : stub_not_while_capturing();
}

_Atomic int stub_waits_for_us;
static _Atomic int waits; /* of the program's, so far */

cu_result cuStreamSynchronize(cu_stream stream)
{
    cu_result code = on_stream("cuStreamSynchronize", stream);
    atomic_fetch_add(&waits, 1);
    if (!code)
        code = stub_not_while_recording(stream);
    return code ? code : stub_not_while_capturing();
}

/* A stream that is recorded waits for points of that recording alone; who waits for one joins it. */
static cu_result join(cu_stream stream, const stub_handle *event)
{
    stub_handle *recording = stub_recording(stream);
    if (recording && event->origin != recording) {
        recording->spoilt = true;
        return STUB_ERROR_CAPTURE_ISOLATION;
    }
    if (!recording && event->captured && !event->origin)
        return STUB_ERROR_CAPTURED_EVENT;
    if (event->origin && (uintptr_t)stream > 2 && stream != event->origin)
        ((stub_handle *)stream)->origin = event->origin;
    return CUDA_SUCCESS;
}

/* Events of other devices may be waited for, and their faults come out here. */
cu_result cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
    const stub_handle *handle = event;
    cu_result code = on_stream("cuStreamWaitEvent", stream);
    if (code || flags)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    if (handle->context->fault)
        return handle->context->fault;
    return stub_is(handle, STUB_EVENT, handle->context) ? join(stream, handle)
                                                        : CUDA_ERROR_INVALID_HANDLE;
}

cu_result cuEventCreate(cu_event *out, unsigned flags)
{
    if (flags > 7 || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    return stub_make("cuEventCreate", STUB_EVENT, flags, out);
}

cu_result cuEventDestroy_v2(cu_event event)
{
    return stub_end("cuEventDestroy_v2", STUB_EVENT, event);
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    stub_handle *handle = event;
    stub_context *context;
    struct timespec now;
    cu_result code = stub_begin("cuEventRecord", &context);
    if (code || !stub_is(event, STUB_EVENT, context) || !stub_is_stream(stream, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&stub.lock);
    handle->origin = stub_recording(stream);
    handle->captured = handle->origin != NULL;
    handle->recorded = true;
    handle->waits = waits;
    handle->ns = (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

static cu_result on_event(const char *call, cu_event event)
{
    stub_context *context;
    cu_result code = stub_begin(call, &context);
    return code || stub_is(event, STUB_EVENT, context) ? code : CUDA_ERROR_INVALID_HANDLE;
}

/* A point of a recording is one of no work. */
static cu_result of_work(cu_event event)
{
    const stub_handle *handle = event;
    if (!handle->captured)
        return stub_not_while_capturing();
    if (handle->origin)
        handle->origin->spoilt = true;
    return STUB_ERROR_CAPTURED_EVENT;
}

cu_result cuEventQuery(cu_event event)
{
    cu_result code = on_event("cuEventQuery", event);
    if (!code && stub_waits_for_us && ((const stub_handle *)event)->waits == waits)
        return CUDA_ERROR_NOT_READY;
    return code ? code : of_work(event);
}

cu_result cuEventSynchronize(cu_event event)
{
    cu_result code = on_event("cuEventSynchronize", event);
    return code ? code : of_work(event);
}

cu_result cuEventElapsedTime(float *out_ms, cu_event start, cu_event stop)
{
    const stub_handle *a = start, *b = stop;
    cu_result code = on_event("cuEventElapsedTime", start);
    if (!code)
        code = on_event("cuEventElapsedTime", stop);
    if (code)
        return code;
    pthread_mutex_lock(&stub.lock);
    if (((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) || !a->recorded || !b->recorded)
        code = CUDA_ERROR_INVALID_HANDLE;
    else
        *out_ms = (float)(b->ns - a->ns) / 1e6f;
    pthread_mutex_unlock(&stub.lock);
    return code;
}

/* What a handle for other processes says here. */
typedef struct passport {
    char kind[8];
    long long process;
    int device;
} passport;

cu_result cuIpcGetEventHandle(cu_event_handle *out, cu_event event)
{
    cu_result code = on_event("cuIpcGetEventHandle", event);
    const stub_handle *handle = event;
    if (code || !(handle->flags & CU_EVENT_INTERPROCESS))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    const passport made = {"stub", getpid(), handle->context->ordinal};
    memset(out, 0, sizeof *out);
    memcpy(out, &made, sizeof made);
    return CUDA_SUCCESS;
}

/* No process reaches another's: what is opened is an event of its own. */
cu_result cuIpcOpenEventHandle(cu_event *out, cu_event_handle handle)
{
    stub_context *context;
    passport shown;
    cu_result code = stub_begin("cuIpcOpenEventHandle", &context);
    memcpy(&shown, &handle, sizeof shown);
    if (code || memcmp(shown.kind, "stub", sizeof "stub") != 0)
        return code ? code : CUDA_ERROR_INVALID_VALUE;
    if (shown.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    return shown.device != context->ordinal
               ? STUB_ERROR_PEER_ACCESS_UNSUPPORTED
               : stub_make("cuIpcOpenEventHandle", STUB_EVENT,
                           CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, out);
}

/* What a text in PTX does, as far as words of it tell. */
static unsigned faults_of(const char *text)
{
    if (strncmp(text, ".version", strlen(".version")) != 0)
        return 0;
    return (strstr(text, "trap;") ? STUB_TRAPS : 0u) |
           (strstr(text, "st.global") ? STUB_STRAYS : 0u);
}

/* Any image will do, as nothing of it runs. */
cu_result cuModuleLoadData(cu_module *out, const void *image)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    cu_result code = stub_not_while_capturing();
    if (code || !stub.modules)
        return code ? code : CUDA_ERROR_NO_BINARY_FOR_GPU;
    return stub_make("cuModuleLoadData", STUB_MODULE, faults_of(image), out);
}

cu_result cuModuleUnload(cu_module module)
{
    return stub_end("cuModuleUnload", STUB_MODULE, module);
}

/* A module's functions are the module itself. */
cu_result cuModuleGetFunction(cu_function *out, cu_module module, const char *name)
{
    stub_context *context;
    cu_result code = stub_begin("cuModuleGetFunction", &context);
    if (code || !stub_is(module, STUB_MODULE, context) || !name[0])
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    stub_handle *handle = module;
    handle->flags &= STUB_FAULTS;
    handle->flags |= strcmp(name, "dropout_kept") == 0 ? STUB_DROPOUT : 0u;
    handle->flags |= strcmp(name, "attention_empty") == 0 ? STUB_EMPTY : 0u;
    handle->shared = STUB_SHARED_ALWAYS;
    *out = module;
    return CUDA_SUCCESS;
}

cu_result cuFuncSetAttribute(cu_function function, cu_function_attribute which, int value)
{
    stub_context *context;
    cu_result code = stub_begin("cuFuncSetAttribute", &context);
    if (code || !stub_is(function, STUB_MODULE, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > STUB_SHARED_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    stub_handle *handle = function;
    handle->shared = value > STUB_SHARED_ALWAYS ? (unsigned)value : STUB_SHARED_ALWAYS;
    return CUDA_SUCCESS;
}

/* Of tiles, only what the module uses is accepted: rows of 128 bytes of 16-bit floats. */
cu_result cuTensorMapEncodeTiled(cu_tensor_map *out, cu_tensor_map_type type, uint32_t rank,
                                 void *memory, const uint64_t *sizes, const uint64_t *strides,
                                 const uint32_t *box, const uint32_t *steps,
                                 cu_tensor_map_interleave interleave, cu_tensor_map_swizzle swizzle,
                                 cu_tensor_map_promotion promotion, cu_tensor_map_fill fill)
{
    enum { RANKS = 5, LINE = 128, UNIT = 16, BOX_MOST = 256 };
    const uint64_t size_most = 1ull << 32, stride_most = 1ull << 40;
    stub_context *context;
    cu_result code = stub_begin("cuTensorMapEncodeTiled", &context);
    if (code)
        return code;
    bool sound =
        (uintptr_t)out % _Alignof(cu_tensor_map) == 0 && (uintptr_t)memory % UNIT == 0 && memory &&
        rank > 0 && rank <= RANKS &&
        (type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) &&
        swizzle == CU_TENSOR_MAP_SWIZZLE_128B && box[0] * sizeof(uint16_t) == LINE &&
        interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
        promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_128B &&
        fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    for (uint32_t d = 0; sound && d < rank; d++)
        sound = sizes[d] > 0 && sizes[d] <= size_most && box[d] > 0 && box[d] <= BOX_MOST &&
                steps[d] == 1 &&
                (d == 0 || (strides[d - 1] % UNIT == 0 && strides[d - 1] < stride_most));
    if (!sound)
        return CUDA_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    return CUDA_SUCCESS;
}

/* What a kernel does, when its memory is the context's. */
static bool take_kernel(const stub_handle *function, void **values, const stub_context *context,
                        stub_job *out)
{
    *out = (stub_job){0};
    if (!(function->flags & (STUB_DROPOUT | STUB_EMPTY)))
        return true;
    if (!values)
        return false;
    if (function->flags & STUB_EMPTY) {
        out->empty = *(const cuda_attention_args *)values[0];
        return true;
    }
    out->dropout = *(const cuda_dropout_args *)values[0];
    return stub_owns(context, (cu_deviceptr)(uintptr_t)out->dropout.out,
                     (size_t)out->dropout.elements * sizeof(uint16_t));
}

/* The launch itself goes well: what comes after it finds the fault. */
static cu_result leave_fault(const stub_handle *function, cu_stream stream, stub_context *context)
{
    pthread_mutex_lock(&stub.lock);
    if ((function->flags & STUB_FAULTS) && !stub_recording(stream) && !context->fault)
        context->fault =
            function->flags & STUB_TRAPS ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_ILLEGAL_ADDRESS;
    pthread_mutex_unlock(&stub.lock);
    return CUDA_SUCCESS;
}

_Atomic int stub_launches;

cu_result cuLaunchKernel(cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, cu_stream stream, void **values, void **extra)
{
    const stub_handle *kernel = function;
    stub_context *context;
    cu_result code = stub_begin("cuLaunchKernel", &context);
    if (code || !stub_is(function, STUB_MODULE, context) || !stub_is_stream(stream, context))
        return code ? code : CUDA_ERROR_INVALID_HANDLE;
    bool sound = grid_x > 0 && grid_y > 0 && grid_z > 0 && block_x > 0 && block_y > 0 &&
                 block_z > 0 && grid_x <= 0x7FFFFFFF && grid_y <= 65535 && grid_z <= 65535 &&
                 (unsigned long long)block_x * block_y * block_z <= 1024 &&
                 shared_bytes <= kernel->shared && (values || (kernel->flags & STUB_FAULTS)) &&
                 !extra;
    stub_job job;
    sound = sound && take_kernel(function, values, context, &job);
    if (!sound)
        return CUDA_ERROR_INVALID_VALUE;
    code = stub_may_queue(stream, context);
    if (code)
        return code;
    code = stub_queue(stream, &job);
    atomic_fetch_add(&stub_launches, 1);
    return code ? code : leave_fault(function, stream, context);
}

_Atomic int stub_overlaps;

cu_result cuLaunchKernelEx(const cu_launch_config *config, cu_function function, void **values,
                           void **extra)
{
    if (!config || config->count != 1 || !config->attributes ||
        config->attributes->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
        config->attributes->permitted != 1)
        return CUDA_ERROR_INVALID_VALUE;
    const cu_result code = cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z,
                                          config->block_x, config->block_y, config->block_z,
                                          config->shared_bytes, config->stream, values, extra);
    if (code == CUDA_SUCCESS)
        atomic_fetch_add(&stub_overlaps, 1);
    return code;
}
