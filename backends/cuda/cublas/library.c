#include "../compile/find.h"
#include "lt.h"

static const tn_symbol symbols[] = {
#define LT_CALL_(field, name, result, parameters) {#name, offsetof(cuda_lt, field)},
    LT_CALL_LIST(LT_CALL_)
#undef LT_CALL_
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static const char files[] = "libcublasLt.so.13|libcublasLt.so.12";
static const cuda_sought sought = {files, "cu13|cublas"};

static tn_status open_lt(const tn_host *host, void **out_self, tn_error *err)
{
    cuda_lt *self = host->alloc(host->self, sizeof *self, _Alignof(cuda_lt));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "cublaslt", "no memory for its table");
    memset(self, 0, sizeof *self);
    tn_status status = cuda_find_bind(host, &sought, symbols, SYMBOLS, self, err);
    if (!status && mtx_init(&self->lock, mtx_plain) != thrd_success)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, "cublaslt", "no memory for a lock");
    if (status) {
        host->release(host->self, self);
        return status;
    }
    *out_self = self;
    return TN_OK;
}

/* 130002 is 13.0.2; 120903, as 12 wrote it, 12.9.3. */
static tn_status version_of(void *any, int64_t *out_number, char *out_text, size_t size,
                            tn_error *err)
{
    const cuda_lt *self = any;
    const unsigned long number = (unsigned long)self->version();
    (void)err;
    *out_number = (int64_t)number;
    snprintf(out_text, size, "%lu.%lu.%lu", number / 10000, number / 100 % 100, number % 100);
    return TN_OK;
}

const tn_library_row cuda_lt_row = {
    .struct_size = sizeof cuda_lt_row,
    .name = "cublaslt",
    .platform = "cuda",
    .files = files,
    .remedy = "install NVIDIA's toolkit, or its cuBLAS part alone (pip install nvidia-cublas)",
    .open = open_lt,
    .version = version_of,
};

tn_status cuda_lt_check(lt_status code, const char *call, tn_error *err)
{
    switch (code) {
    case LT_SUCCESS: return TN_OK;
    case LT_NO_MEMORY:
        return tn_fail(err, TN_OUT_OF_MEMORY, code, call, "cuBLASLt has no memory for it");
    case LT_NOT_SUPPORTED:
    case LT_ARCH_MISMATCH:
        return tn_fail(err, TN_UNSUPPORTED, code, call, "cuBLASLt has nothing for this product");
    case LT_NOT_INITIALIZED:
        return tn_fail(err, TN_UNAVAILABLE, code, call,
                       "cuBLASLt does not start: its CUDA version and the driver's may not fit");
    default: return tn_fail(err, TN_INTERNAL, code, call, "cuBLASLt's result is %d", code);
    }
}

/* What does not start may be too new for the driver. */
static tn_status check_start(const cuda_lt *self, const cuda *platform, lt_status code,
                             tn_error *err)
{
    const unsigned long number = (unsigned long)self->version();
    const int serves = (int)platform->driver_version;
    if (code != LT_NOT_INITIALIZED || number / 10000 <= (unsigned long)serves / 1000)
        return cuda_lt_check(code, "cublasLtCreate", err);
    return tn_fail(err, TN_INCOMPATIBLE, code, "cublasLtCreate",
                   "cuBLASLt %lu.%lu does not start on a driver that serves CUDA %d.%d: install a "
                   "newer driver, or cuBLAS for CUDA %d",
                   number / 10000, number / 100 % 100, serves / 1000, serves % 1000 / 10,
                   serves / 1000);
}

/* With the lock held. A handle of a context that was reset went with it. Making one allocates, which a capture
 * that the call is part of may not see. */
static tn_status make_handle(cuda_lt *self, const cuda_scope *scope, tn_error *err)
{
    const cuda_device *device = scope->device;
    const uint32_t life = atomic_load(&device->life);
    cuda_scope aside = {.self = scope->self, .device = scope->device};
    lt_handle made = NULL;
    if (atomic_load(&self->of[device->index].handle) &&
        atomic_load(&self->of[device->index].life) == life)
        return TN_OK;
    cuda_relax(&aside);
    tn_status status = check_start(self, scope->self, self->create(&made), err);
    cuda_leave(&aside);
    if (status)
        return status;
    atomic_store(&self->of[device->index].handle, made);
    atomic_store_explicit(&self->of[device->index].life, life, memory_order_release);
    return TN_OK;
}

tn_status cuda_lt_handle(cuda_lt *self, const cuda_scope *scope, lt_handle *out, tn_error *err)
{
    const cuda_device *device = scope->device;
    const int32_t i = device->index;
    tn_status status = TN_OK;
    bool sound = atomic_load_explicit(&self->of[i].life, memory_order_acquire) ==
                     atomic_load_explicit(&device->life, memory_order_acquire) &&
                 atomic_load(&self->of[i].handle);
    if (!sound) {
        mtx_lock(&self->lock);
        status = make_handle(self, scope, err);
        mtx_unlock(&self->lock);
    }
    *out = atomic_load_explicit(&self->of[i].handle, memory_order_relaxed);
    return status;
}
