#include "code.h"

#include "ready.h"

enum { NAME_ROOM = 32, OPTIONS_ROOM = 512 };

struct cuda_kernel {
    cuda_kernel *next;
    const cuda_unit *unit;
    char function_name[NAME_ROOM];
    char options[OPTIONS_ROOM];
    void *image; /* kept, because a reset unloads it from the device */
    _Atomic(cu_function) function;
    _Atomic uint32_t life;   /* the device's epoch at loading */
    _Atomic uint32_t shared; /* bytes of dynamic shared memory that a launch may request */
    bool overlaps;           /* its launches may overlap with the stream's previous one */
};

/* Dynamic shared memory that every kernel may request. */
enum { SHARED_ALWAYS = 48 << 10 };

/* The key contains everything that the machine code depends on. */
static tn_status make_key(const cuda_nvrtc *nvrtc, const char *architecture,
                          const cuda_case *wanted, const char *text, char **out, size_t *out_size,
                          tn_error *err)
{
    static const char *const always[] = {CUDA_NVRTC_OPTIONS};
    const tn_host *host = nvrtc->host;
    size_t room = strlen(text) + strlen(wanted->options) + strlen(architecture) + 128;
    for (int32_t i = 0; i < cuda_headers; i++)
        room += strlen(cuda_header_texts[i]);
    char *key = host->alloc(host->self, room, 1);
    if (!key)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "nvrtc", "no memory for a key");
    size_t used = (size_t)snprintf(key, room, "nvrtc %d.%d %s\n%s\n%s\n%s\n%s", (int)nvrtc->major,
                                   (int)nvrtc->minor, architecture, always[0], always[1],
                                   wanted->options, text);
    for (int32_t i = 0; i < cuda_headers; i++)
        used += (size_t)snprintf(key + used, room - used, "%s", cuda_header_texts[i]);
    *out_size = used;
    *out = key;
    return TN_OK;
}

static tn_status compile_text(const cuda_nvrtc *nvrtc, const char *architecture,
                              const cuda_case *wanted, const char *text, void **out,
                              size_t *out_size, tn_error *err)
{
    const cuda_source source = {.name = cuda_unit_name(wanted->unit),
                                .text = text,
                                .options = wanted->options,
                                .header_names = cuda_header_names,
                                .header_texts = cuda_header_texts,
                                .headers = cuda_headers};
    return cuda_nvrtc_compile(nvrtc, &source, architecture, out, out_size, err);
}

const cuda_nvrtc *cuda_compiler(cuda *self)
{
    mtx_lock(&self->lock);
    if (!self->sought_compiler) {
        self->sought_compiler = true;
        if (cuda_nvrtc_open(self->host, &self->compiler, NULL))
            self->compiler = NULL;
    }
    const cuda_nvrtc *found = self->compiler;
    mtx_unlock(&self->lock);
    return found;
}

/* Copies code that was compiled ahead. */
static tn_status copy_ready(const tn_host *host, const void *code, size_t size, void **out,
                            tn_error *err)
{
    void *copy = host->alloc(host->self, size, 16);
    if (!copy)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cuda", "no memory for %zu bytes of code", size);
    memcpy(copy, code, size);
    *out = copy;
    return TN_OK;
}

tn_status cuda_code_make(const cuda_nvrtc *nvrtc, const char *architecture, const cuda_case *wanted,
                         void **out, size_t *out_size, tn_error *err)
{
    const tn_host *host = nvrtc->host;
    const void *ready = cuda_ready_find(architecture, wanted, out_size);
    if (ready)
        return copy_ready(host, ready, *out_size, out, err);
    char *text = cuda_unit_text(host, wanted->unit), *key = NULL;
    size_t key_size = 0;
    tn_status status = text ? make_key(nvrtc, architecture, wanted, text, &key, &key_size, err)
                            : tn_fail(err, TN_OUT_OF_MEMORY, 0, "nvrtc", "no memory for a text");
    bool has_cache = TN_HAS(host, tn_host, cache_put);
    if (!status && has_cache &&
        host->cache_get(host->self, "cubin", key, key_size, out, out_size, NULL) == TN_OK)
        goto done;
    if (!status)
        status = compile_text(nvrtc, architecture, wanted, text, out, out_size, err);
    if (!status && has_cache)
        (void)host->cache_put(host->self, "cubin", key, key_size, *out, *out_size, NULL);
done:
    host->release(host->self, key);
    host->release(host->self, text);
    return status;
}

static cuda_kernel *find_kernel(const cuda_device *device, const cuda_case *wanted)
{
    cuda_kernel *kernel = atomic_load_explicit(&device->kernels, memory_order_acquire);
    while (kernel &&
           (kernel->unit != wanted->unit || strcmp(kernel->function_name, wanted->function) != 0 ||
            strcmp(kernel->options, wanted->options) != 0))
        kernel = kernel->next;
    return kernel;
}

/* Must be called with kernels_lock held and the context current. */
static tn_status load(const cuda_scope *scope, cuda_kernel *kernel, tn_error *err)
{
    const cuda_driver *driver = &scope->self->driver;
    uint32_t life = atomic_load(&scope->device->life);
    cu_module module = NULL;
    cu_function function = NULL;
    if (atomic_load(&kernel->function) && atomic_load(&kernel->life) == life)
        return TN_OK;
    tn_status status =
        cuda_check(scope, driver->module_load(&module, kernel->image), "cuModuleLoadData", err);
    if (status)
        return status;
    status = cuda_check(scope, driver->module_function(&function, module, kernel->function_name),
                        "cuModuleGetFunction", err);
    if (status) {
        (void)driver->module_unload(module);
        return status;
    }
    atomic_store(&kernel->function, function);
    atomic_store(&kernel->shared, SHARED_ALWAYS);
    atomic_store_explicit(&kernel->life, life, memory_order_release);
    return TN_OK;
}

/* A compiler newer than the driver may produce code that the driver does not support. */
static tn_status blame(const cuda_nvrtc *nvrtc, int32_t serves, const tn_error *said, tn_error *err)
{
    if (said->status != TN_INCOMPATIBLE || nvrtc->major * 1000 + nvrtc->minor * 10 <= serves)
        return tn_fail(err, said->status, said->native_code, said->where, "%s", said->message);
    return tn_fail(err, TN_INCOMPATIBLE, said->native_code, said->where,
                   "%.250s; the code is NVRTC %d.%d's, and the driver serves CUDA %d.%d: install a "
                   "newer driver, or NVRTC for CUDA %d",
                   said->message, (int)nvrtc->major, (int)nvrtc->minor, (int)serves / 1000,
                   (int)serves % 1000 / 10, (int)serves / 1000);
}

/* Returns whether launches may overlap: on devices of capability 9.0 or later, with a driver that can also capture
 * them in a graph. */
static bool can_overlap(const cuda *self, const cuda_found *found)
{
    enum { MAJOR = 9, VERSION = 12030 };
    return found->major >= MAJOR && self->driver_version >= VERSION && self->driver.launch_with;
}

/* Must be called with kernels_lock held. */
static tn_status add(const cuda_scope *scope, const cuda_nvrtc *nvrtc, const cuda_case *wanted,
                     cuda_kernel **out, tn_error *err)
{
    const tn_host *host = scope->self->host;
    const cuda_found *found = NULL;
    char architecture[32];
    tn_error said;
    size_t size = 0;
    if (strlen(wanted->function) >= NAME_ROOM || strlen(wanted->options) >= OPTIONS_ROOM)
        return tn_fail(err, TN_INTERNAL, 0, "cuda", "the name of a kernel's case is too long");
    cuda_kernel *kernel = host->alloc(host->self, sizeof *kernel, _Alignof(cuda_kernel));
    if (!kernel)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cuda", "no memory for a kernel");
    memset(kernel, 0, sizeof *kernel);
    kernel->unit = wanted->unit;
    memcpy(kernel->function_name, wanted->function, strlen(wanted->function) + 1);
    memcpy(kernel->options, wanted->options, strlen(wanted->options) + 1);
    tn_status status = cuda_describe(scope->self, scope->device->index, &found, err);
    if (!status) {
        kernel->overlaps = can_overlap(scope->self, found);
        cuda_architecture(found, architecture, sizeof architecture);
        status = cuda_code_make(nvrtc, architecture, wanted, &kernel->image, &size, err);
    }
    if (!status && load(scope, kernel, &said))
        status = blame(nvrtc, scope->self->driver_version, &said, err);
    if (status) {
        host->release(host->self, kernel->image);
        host->release(host->self, kernel);
        return status;
    }
    kernel->next = atomic_load(&scope->device->kernels);
    atomic_store_explicit(&scope->device->kernels, kernel, memory_order_release);
    *out = kernel;
    return TN_OK;
}

tn_status cuda_kernel_get(cuda *self, const cuda_nvrtc *nvrtc, int32_t device,
                          const cuda_case *wanted, cuda_kernel **out, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(self, device, &scope, err);
    if (status)
        return status;
    cuda_relax(&scope);
    mtx_lock(&scope.device->kernels_lock);
    cuda_kernel *kernel = find_kernel(scope.device, wanted);
    if (!kernel)
        status = add(&scope, nvrtc, wanted, &kernel, err);
    mtx_unlock(&scope.device->kernels_lock);
    cuda_leave(&scope);
    if (!status)
        *out = kernel;
    return status;
}

/* Runs within the launch's scope, but relaxes the capture mode itself: the launch may be captured,
 * loading must not be. */
static tn_status load_again(const cuda_scope *scope, cuda_kernel *kernel, tn_error *err)
{
    cuda_scope aside = {.self = scope->self, .device = scope->device};
    cuda_relax(&aside);
    mtx_lock(&scope->device->kernels_lock);
    tn_status status = load(scope, kernel, err);
    mtx_unlock(&scope->device->kernels_lock);
    cuda_leave(&aside);
    return status;
}

/* Permits a launch with that much shared memory. */
static cu_result permit_shared(const cuda_driver *driver, cuda_kernel *kernel, uint32_t shared)
{
    if (shared <= atomic_load_explicit(&kernel->shared, memory_order_relaxed))
        return CUDA_SUCCESS;
    cu_result code =
        driver->function_set(atomic_load_explicit(&kernel->function, memory_order_relaxed),
                             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared);
    if (code == CUDA_SUCCESS)
        atomic_store_explicit(&kernel->shared, shared, memory_order_relaxed);
    return code;
}

static cu_result queue_overlapping(const cuda_driver *driver, cu_function function,
                                   const cuda_launch *launch, void **values)
{
    cu_launch_attribute overlaps = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                    .permitted = 1};
    const cu_launch_config config = {.grid_x = launch->blocks,
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = launch->threads,
                                     .block_y = 1,
                                     .block_z = 1,
                                     .shared_bytes = launch->shared,
                                     .stream = launch->stream,
                                     .attributes = &overlaps,
                                     .count = 1};
    return driver->launch_with(&config, function, values, NULL);
}

tn_status cuda_kernel_launch(cuda *self, int32_t device, const cuda_launch *launch, tn_error *err)
{
    cuda_kernel *kernel = launch->kernel;
    void *values[] = {launch->args};
    cuda_scope scope;
    tn_status status = cuda_enter(self, device, &scope, err);
    if (status)
        return status;
    if (atomic_load_explicit(&kernel->life, memory_order_acquire) !=
        atomic_load_explicit(&scope.device->life, memory_order_acquire))
        status = load_again(&scope, kernel, err);
    if (status) {
        cuda_leave(&scope);
        return status;
    }
    cu_result code = permit_shared(&self->driver, kernel, launch->shared);
    if (code != CUDA_SUCCESS)
        return cuda_done(&scope, code, "cuFuncSetAttribute", err);
    cu_function function = atomic_load_explicit(&kernel->function, memory_order_relaxed);
    if (launch->overlaps && kernel->overlaps)
        return cuda_done(&scope, queue_overlapping(&self->driver, function, launch, values),
                         "cuLaunchKernelEx", err);
    code = self->driver.launch(function, launch->blocks, 1, 1, launch->threads, 1, 1,
                               launch->shared, launch->stream, values, NULL);
    return cuda_done(&scope, code, "cuLaunchKernel", err);
}

tn_status cuda_kernel_beside(const tn_run *run, const cuda_case *wanted, const char *what,
                             cuda_kernel **out, tn_error *err)
{
    const cuda_nvrtc *compiler = cuda_compiler(run->platform);
    if (!compiler)
        return tn_fail(err, TN_UNSUPPORTED, 0, run->row->name,
                       "%s needs a kernel of Tenon's own, and NVIDIA's compiler, nvrtc, does not "
                       "serve here: see `tenon libraries`",
                       what);
    tn_error said = {0};
    tn_status status = cuda_kernel_get(run->platform, compiler, run->device, wanted, out, &said);
    if (!status)
        return TN_OK;
    const bool passes = status == TN_DEVICE_LOST || status == TN_OUT_OF_MEMORY;
    return tn_fail(err, passes ? status : TN_UNSUPPORTED, said.native_code, said.where,
                   "the kernel for %s: %s", what, said.message);
}
