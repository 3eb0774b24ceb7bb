#include "cublas_common.h"

#include "../../kernels/layout.h"
#include "tenon/module/op/matmul.h"

tn_status cuda_blas_open(const tn_host *host, const cuda_blas_form *form, void **out_self,
                         tn_error *err)
{
    cuda_handles *self = host->alloc(host->self, form->size, _Alignof(max_align_t));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, form->library, "no memory for its table");
    memset(self, 0, form->size);
    tn_status status = cuda_find_bind(host, form->sought, form->symbols, form->count, self, err);
    if (!status && mtx_init(&self->lock, mtx_plain) != thrd_success)
        status = tn_fail(err, TN_OUT_OF_MEMORY, 0, form->library, "no memory for a lock");
    if (status)
        host->release(host->self, self);
    else
        *out_self = self;
    return status;
}

static bool is_sound(const cuda_handles *handles, const cuda_device *device)
{
    const int32_t i = device->index;
    return atomic_load_explicit(&handles->of[i].life, memory_order_acquire) ==
               atomic_load_explicit(&device->life, memory_order_acquire) &&
           atomic_load(&handles->of[i].handle);
}

tn_status cuda_handles_get(cuda_handles *handles, const cuda_scope *scope, void *self,
                           cuda_handle_make *make, void **out, tn_error *err)
{
    const cuda_device *device = scope->device;
    const int32_t i = device->index;
    tn_status status = TN_OK;
    if (!is_sound(handles, device)) {
        mtx_lock(&handles->lock);
        const uint32_t life = atomic_load(&device->life);
        void *made = NULL;
        if (!is_sound(handles, device)) {
            cuda_scope aside = {.self = scope->self, .device = scope->device};
            cuda_relax(&aside);
            status = make(self, scope, &made, err);
            cuda_leave(&aside);
            status = cuda_blame(scope, status, "a library's handle", err);
            if (!status) {
                atomic_store(&handles->of[i].handle, made);
                atomic_store_explicit(&handles->of[i].life, life, memory_order_release);
            }
        }
        mtx_unlock(&handles->lock);
    }
    *out = atomic_load_explicit(&handles->of[i].handle, memory_order_relaxed);
    return status;
}

tn_status cuda_blas_check(const char *library, lt_status code, const char *call, tn_error *err)
{
    switch (code) {
    case LT_SUCCESS: return TN_OK;
    case LT_NO_MEMORY:
        return tn_fail(err, TN_OUT_OF_MEMORY, code, call, "%s has no memory for it", library);
    case LT_NOT_SUPPORTED:
    case LT_ARCH_MISMATCH:
        return tn_fail(err, TN_UNSUPPORTED, code, call, "%s has nothing for this product", library);
    case LT_NOT_INITIALIZED:
        return tn_fail(err, TN_UNAVAILABLE, code, call,
                       "%s does not start: its CUDA version and the driver's may not fit", library);
    default: return tn_fail(err, TN_INTERNAL, code, call, "%s's result is %d", library, code);
    }
}

tn_status cuda_blas_check_start(const cuda_scope *scope, const char *library, int number,
                                lt_status code, const char *call, tn_error *err)
{
    const int serves = (int)scope->self->driver_version;
    if (code != LT_NOT_INITIALIZED || number / 10000 <= serves / 1000)
        return cuda_blas_check(library, code, call, err);
    return tn_fail(err, TN_INCOMPATIBLE, code, call,
                   "%s %d.%d does not start on a driver that serves CUDA %d.%d: install a newer "
                   "driver, or cuBLAS for CUDA %d",
                   library, number / 10000, number / 100 % 100, serves / 1000, serves % 1000 / 10,
                   serves / 1000);
}

lt_type cuda_blas_type(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F64: return LT_R_64F;
    case TN_F16: return LT_R_16F;
    case TN_BF16: return LT_R_16BF;
    case TN_I8: return LT_R_8I;
    case TN_F8_E4M3FN: return LT_R_F8_E4M3;
    case TN_F8_E5M2: return LT_R_F8_E5M2;
    case TN_I32: return LT_R_32I;
    case TN_C64: return LT_C_32F;
    case TN_C128: return LT_C_64F;
    default: return LT_R_32F;
    }
}

cuda_blas_sums cuda_blas_sums_of(const tn_kernel_row *row, const tn_op *op)
{
    if (row->numerics & TN_NUM_F16_SUMS)
        return (cuda_blas_sums){LT_COMPUTE_16F, LT_R_16F};
    if (row->numerics & TN_NUM_ROUNDS_F32_TF32)
        return (cuda_blas_sums){LT_COMPUTE_TF32, LT_R_32F};
    switch (op->operand[TN_MATMUL_A].dtype) {
    case TN_F64: return (cuda_blas_sums){LT_COMPUTE_64F, LT_R_64F};
    case TN_C128: return (cuda_blas_sums){LT_COMPUTE_64F, LT_C_64F};
    case TN_C64: return (cuda_blas_sums){LT_COMPUTE_32F, LT_C_32F};
    case TN_I8: return (cuda_blas_sums){LT_COMPUTE_32I, LT_R_32I};
    default: return (cuda_blas_sums){LT_COMPUTE_32F, LT_R_32F};
    }
}

cuda_blas_factor cuda_blas_factor_of(lt_type scale, double value)
{
    enum { ONE_OF_F16 = 0x3C00 };
    cuda_blas_factor out = {.f64 = {0, 0}};
    if (scale == LT_R_64F || scale == LT_C_64F)
        out.f64[0] = value;
    else if (scale == LT_R_32I)
        out.i32 = (int32_t)value;
    else if (scale == LT_R_16F)
        out.f16 = value != 0 ? ONE_OF_F16 : 0;
    else
        out.f32[0] = (float)value;
    return out;
}

/* Both libraries need 256-byte alignment; a run's workspace is aligned to 64. */
enum { ROOM_ALIGNMENT = 256, ROOM_LOST = ROOM_ALIGNMENT - TN_OP_ALIGNMENT_MAX };

uint64_t cuda_blas_room(const tn_query *query, const cuda_blas_memory *memory)
{
    const uint64_t more = ROOM_LOST + memory->behind;
    uint64_t bytes = memory->usual;
    int64_t wished = -1, limit = -1;
    (void)query->setting(query, memory->setting, &wished);
    (void)query->setting(query, "workspace.limit", &limit);
    if (wished >= 0) {
        bytes = (uint64_t)wished;
    } else if (limit >= 0 && (uint64_t)limit < bytes + more) {
        const uint64_t left = (uint64_t)limit > more ? (uint64_t)limit - more : 0;
        bytes = left > memory->least ? left : memory->least;
    }
    return bytes || memory->behind ? bytes + more : 0;
}

uint64_t cuda_blas_room_usable(uint64_t bytes)
{
    return bytes > ROOM_LOST ? bytes - ROOM_LOST : 0;
}

void *cuda_blas_room_begin(void *workspace)
{
    const uintptr_t begin = (uintptr_t)workspace;
    return (void *)((begin + ROOM_ALIGNMENT - 1) / ROOM_ALIGNMENT * ROOM_ALIGNMENT);
}
