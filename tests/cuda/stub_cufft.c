/* A stub of cuFFT, beside the stub of the driver: it keeps books of plans and of what is done in which order, finds fault
 * where its environment says so (stub_cufft.h), and computes nothing. */
#include "stub_cufft.h"
#include "../../backends/cuda/lib/cufft/cufft.h"
#include "stub.h"

#define FFT_CALL_(field, name, result, parameters) result name parameters;
FFT_CALL_LIST(FFT_CALL_)
#undef FFT_CALL_

stub_fft_seen stub_cufft_seen;

static stub_fft_plan *plan_of(fft_handle handle)
{
    const bool is_known = handle > 0 && handle < STUB_PLANS_MOST;
    stub_fft_plan *plan = is_known ? &stub_cufft_seen.plans[handle] : NULL;
    return plan && atomic_load(&plan->alive) ? plan : NULL;
}

fft_status cufftGetProperty(fft_property which, int *out)
{
    static const int version[] = {12, 0, 1};
    *out = version[which];
    return FFT_SUCCESS;
}

fft_status cufftCreate(fft_handle *out)
{
    const int number = atomic_fetch_add(&stub_cufft_seen.made, 1) + 1;
    if (number >= STUB_PLANS_MOST)
        return FFT_NO_MEMORY;
    stub_cufft_seen.plans[number] = (stub_fft_plan){.alive = 1};
    *out = number;
    return FFT_SUCCESS;
}

fft_status cufftDestroy(fft_handle handle)
{
    stub_fft_plan *plan = plan_of(handle);
    if (!plan)
        return 1;
    if (atomic_load(&plan->in_use))
        atomic_fetch_add(&stub_cufft_seen.crossed, 1);
    atomic_store(&plan->alive, 0);
    atomic_fetch_add(&stub_cufft_seen.destroyed, 1);
    return FFT_SUCCESS;
}

/* As the library: only before the plan is made. */
fft_status cufftSetAutoAllocation(fft_handle handle, int automatic)
{
    stub_fft_plan *plan = plan_of(handle);
    if (!plan || plan->is_made)
        return 1;
    plan->is_own_work = !automatic;
    return FFT_SUCCESS;
}

fft_status cufftXtMakePlanMany(fft_handle handle, int rank, long long *lengths, long long *in_embed,
                               long long in_stride, long long in_distance, fft_type in_type,
                               long long *out_embed, long long out_stride, long long out_distance,
                               fft_type out_type, long long batch, size_t *out_work,
                               fft_type computed)
{
    stub_fft_plan *plan = plan_of(handle);
    const bool is_double = in_type == FFT_R64 || in_type == FFT_C64;
    if (!plan || plan->is_made || rank < 1 || rank > 3 || batch < 1 || in_stride < 1 ||
        out_stride < 1 || in_distance < 1 || out_distance < 1 ||
        computed != (is_double ? FFT_C64 : FFT_C32))
        return FFT_INVALID_VALUE;
    const fft_status code = (fft_status)stub_number("STUB_FFT", FFT_SUCCESS);
    if (code)
        return code;
    plan->rank = rank, plan->batch = batch, plan->in_type = in_type, plan->out_type = out_type;
    plan->in_stride = in_stride, plan->in_distance = in_distance;
    plan->out_stride = out_stride, plan->out_distance = out_distance;
    for (int d = 0; d < rank; d++) {
        plan->lengths[d] = lengths[d];
        plan->in_embed[d] = in_embed[d];
        plan->out_embed[d] = out_embed[d];
    }
    plan->is_made = 1;
    *out_work = plan->work_bytes = stub_number("STUB_FFT_WORK", 4096);
    return FFT_SUCCESS;
}

fft_status cufftSetStream(fft_handle handle, fft_stream stream)
{
    stub_fft_plan *plan = plan_of(handle);
    if (!plan)
        return 1;
    if (atomic_exchange(&plan->in_use, 1))
        atomic_fetch_add(&stub_cufft_seen.crossed, 1);
    plan->stream = stream;
    return FFT_SUCCESS;
}

fft_status cufftSetWorkArea(fft_handle handle, void *work)
{
    stub_fft_plan *plan = plan_of(handle);
    if (!plan)
        return 1;
    plan->work = (uintptr_t)work;
    return FFT_SUCCESS;
}

static bool is_real(int32_t type)
{
    return type == FFT_R32 || type == FFT_R64;
}

fft_status cufftXtExec(fft_handle handle, void *in, void *out, int direction)
{
    stub_fft_plan *plan = plan_of(handle);
    if (!plan)
        return 1;
    if (!plan->is_made || !plan->is_own_work || !atomic_load(&plan->in_use) ||
        (plan->work_bytes > 0 && !plan->work))
        atomic_fetch_add(&stub_cufft_seen.unready, 1);
    plan->in = (uintptr_t)in, plan->out = (uintptr_t)out, plan->direction = direction;
    atomic_fetch_add(&stub_cufft_seen.transforms, 1);
    atomic_store(&plan->in_use, 0);
    /* One direction for each kind with real numbers. */
    if (plan->in_type != plan->out_type && (direction == FFT_FORWARD) != is_real(plan->in_type))
        return FFT_NOT_SUPPORTED;
    return (fft_status)stub_number("STUB_FFT_EXEC", FFT_SUCCESS);
}
