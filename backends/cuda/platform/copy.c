/* Copies between a device and the host, within one device and between two devices; and fills. */
#include "cuda.h"

static cu_deviceptr at(const void *memory)
{
    return (cu_deviceptr)(uintptr_t)memory;
}

static cu_result copy_line(const cuda_driver *driver, const tn_copy_job *job)
{
    size_t bytes = (size_t)job->bytes;
    if (job->from_device < 0)
        return driver->copy_in(at(job->to), job->from, bytes, job->stream);
    if (job->to_device < 0)
        return driver->copy_out(job->to, at(job->from), bytes, job->stream);
    return driver->copy_within(at(job->to), at(job->from), bytes, job->stream);
}

static cu_result copy_rows(const cuda_driver *driver, const tn_copy_job *job)
{
    bool in = job->from_device < 0, out = job->to_device < 0;
    const cu_copy_2d copy = {
        .from_type = in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .from_host = in ? job->from : NULL,
        .from_device = in ? 0 : at(job->from),
        .from_pitch = (size_t)job->from_pitch,
        .to_type = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .to_host = out ? job->to : NULL,
        .to_device = out ? 0 : at(job->to),
        .to_pitch = (size_t)job->to_pitch,
        .width = (size_t)job->bytes,
        .height = (size_t)job->rows,
    };
    return driver->copy_rows(&copy, job->stream);
}

/* Copies row by row, for a pitch that exceeds the maximum of the driver's 2D copies. */
static cu_result copy_each(const cuda_driver *driver, const tn_copy_job *job)
{
    tn_copy_job one = *job;
    cu_result code = CUDA_SUCCESS;
    for (uint64_t row = 0; row < job->rows && !code; row++) {
        one.to = (char *)job->to + row * job->to_pitch;
        one.from = (const char *)job->from + row * job->from_pitch;
        code = copy_line(driver, &one);
    }
    return code;
}

static bool is_wide(const cuda_scope *scope, const tn_copy_job *job)
{
    int most = 0;
    uint64_t pitch = job->to_pitch > job->from_pitch ? job->to_pitch : job->from_pitch;
    if (job->rows == 1)
        return false;
    cu_result code = scope->self->driver.device_attribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PITCH,
                                                          scope->device->handle);
    return code != CUDA_SUCCESS || pitch > (uint64_t)most;
}

static cu_result copy_peer_rows(const cuda_driver *driver, const tn_copy_job *job, cu_context to,
                                cu_context from)
{
    const cu_copy_peer copy = {.from_type = CU_MEMORYTYPE_DEVICE,
                               .from_device = at(job->from),
                               .from_context = from,
                               .from_pitch = (size_t)job->from_pitch,
                               .from_height = (size_t)job->rows,
                               .to_type = CU_MEMORYTYPE_DEVICE,
                               .to_device = at(job->to),
                               .to_context = to,
                               .to_pitch = (size_t)job->to_pitch,
                               .to_height = (size_t)job->rows,
                               .width = (size_t)job->bytes,
                               .height = (size_t)job->rows,
                               .depth = 1};
    return driver->copy_peer_rows(&copy, job->stream);
}

static cu_result copy_peer_each(const cuda_driver *driver, const tn_copy_job *job, cu_context to,
                                cu_context from)
{
    cu_result code = CUDA_SUCCESS;
    for (uint64_t row = 0; row < job->rows && !code; row++)
        code = driver->copy_peer(at(job->to) + row * job->to_pitch, to,
                                 at(job->from) + row * job->from_pitch, from, (size_t)job->bytes,
                                 job->stream);
    return code;
}

static cu_result copy_peer(const cuda_scope *to, const cuda_scope *from, const tn_copy_job *job)
{
    const bool each = job->rows == 1 || is_wide(to, job) || is_wide(from, job);
    return (each ? copy_peer_each : copy_peer_rows)(&to->self->driver, job,
                                                    atomic_load(&to->device->context),
                                                    atomic_load(&from->device->context));
}

/* Opens both devices and enables peer access from the destination to the source where the hardware supports
 * it. Otherwise the driver copies through the host. */
static tn_status copy_between(cuda *self, const tn_copy_job *job, tn_error *err)
{
    cuda_scope from, to;
    tn_status status = cuda_enter(self, job->from_device, &from, err);
    if (status)
        return status;
    status = cuda_enter(self, job->to_device, &to, err);
    if (status) {
        cuda_leave(&from);
        return status;
    }
    cuda_memory_share(&to, from.device);
    status = cuda_check_either(&to, copy_peer(&to, &from, job), "cuMemcpyPeerAsync", err);
    cuda_leave(&to);
    cuda_leave(&from);
    return status;
}

tn_status cuda_copy(void *any, const tn_copy_job *job, tn_error *err)
{
    cuda_scope scope;
    if (job->to_device >= 0 && job->from_device >= 0 && job->to_device != job->from_device)
        return copy_between(any, job, err);
    tn_status status =
        cuda_enter(any, job->to_device >= 0 ? job->to_device : job->from_device, &scope, err);
    if (status)
        return status;
    const cuda_driver *driver = &scope.self->driver;
    cu_result code = job->rows == 1         ? copy_line(driver, job)
                     : is_wide(&scope, job) ? copy_each(driver, job)
                                            : copy_rows(driver, job);
    return cuda_done(&scope, code, "cuMemcpyAsync", err);
}

/* The driver's fills support patterns of at most four bytes: writes an 8-byte pattern once, then copies it,
 * doubling the filled size each time. */
static cu_result fill_eight(const cuda_driver *driver, const tn_fill_job *job)
{
    cu_deviceptr to = at(job->to);
    cu_result code = driver->fill_32(to, (unsigned)job->pattern, 1, job->stream);
    if (!code)
        code = driver->fill_32(to + 4, (unsigned)(job->pattern >> 32), 1, job->stream);
    for (uint64_t done = 8; done < job->bytes && !code;) {
        uint64_t more = done < job->bytes - done ? done : job->bytes - done;
        code = driver->copy_within(to + done, to, (size_t)more, job->stream);
        done += more;
    }
    return code;
}

static cu_result queue_fill(const cuda_driver *driver, const tn_fill_job *job)
{
    size_t count = (size_t)(job->bytes / job->pattern_bytes);
    switch (job->pattern_bytes) {
    case 1: return driver->fill_8(at(job->to), (unsigned char)job->pattern, count, job->stream);
    case 2: return driver->fill_16(at(job->to), (unsigned short)job->pattern, count, job->stream);
    case 4: return driver->fill_32(at(job->to), (unsigned)job->pattern, count, job->stream);
    default: break;
    }
    if ((uint32_t)job->pattern == (uint32_t)(job->pattern >> 32))
        return driver->fill_32(at(job->to), (unsigned)job->pattern, 2 * count, job->stream);
    return fill_eight(driver, job);
}

tn_status cuda_fill(void *any, const tn_fill_job *job, tn_error *err)
{
    cuda_scope scope;
    tn_status status = cuda_enter(any, job->device, &scope, err);
    return status ? status
                  : cuda_done(&scope, queue_fill(&scope.self->driver, job), "cuMemsetAsync", err);
}
